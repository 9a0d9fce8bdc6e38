// Nothing is allocated after construction: all that the program requests is counted here.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/prefetch.h"
#include "support/count_allocations.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

using sluice::test::n_requests;

TEST(PolicyAllocation, TheCounterCounts) {
  const uint64_t before = n_requests;
  const std::vector<char> block(100);
  EXPECT_GE(n_requests - before, 1u);
}

TEST(PolicyAllocation, NoStepAllocates) {
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(6, 32, 4), .n_decode = 300, .topic_steps = 100});
  for (const PolicyKind policy : kPolicies) {
    ExpertCache cache(
        {.policy = policy, .n_experts = 32, .layers = share_slots(trace.header.shape, 0.2)});
    const uint64_t before = n_requests;
    for (const RoutingStep& step : trace.steps) {
      cache.begin_step(step.phase);
      for (int l = 0; l < 6; ++l) cache.touch(LayerId(l), step.layer(l));
      cache.end_step();
    }
    EXPECT_EQ(n_requests - before, 0u) << policy_name(policy);
    EXPECT_GT(cache.counts().n_copies, 100u);
  }
}

TEST(PolicyAllocation, NoPrefetchAllocates) {
  const RoutingShape shape = generator_shape(6, 32, 4);
  const ExpertCache cache({.n_experts = 32, .layers = share_slots(shape, 0.2)});
  PrefetchPlanner planner({.n_slots = 8, .slot_bytes = 4'000'000, .shape = shape});
  std::vector<PrefetchCandidate> candidates;
  for (int e = 0; e < 32; ++e) candidates.push_back({{LayerId(1), ExpertId(e)}, 1.0 / (e + 1)});
  const std::vector<RoutedExpert> routed = {{ExpertId(0), 1.0f}};
  const uint64_t before = n_requests;
  for (int step = 0; step < 20; ++step) {
    for (const PrefetchCopy& copy : planner.plan(candidates, cache, 20'000'000)) {
      planner.arrived(copy.slot);
    }
    planner.routed(LayerId(1), routed);
  }
  EXPECT_EQ(n_requests - before, 0u);
  EXPECT_GT(planner.counts().useful_bytes, 0u);
}

}  // namespace
}  // namespace sluice::policy::test
