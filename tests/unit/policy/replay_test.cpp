// The replay: figures checked by hand, and its own speed.
// SPDX-License-Identifier: Apache-2.0
#include "policy/replay.h"

#include <ctime>

#include "support/sanitizers.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

TEST(Replay, TimesAndBytesAreAsCountedByHand) {
  RoutingTrace trace{{"tiny", generator_shape(2, 4, 1, 1'000'000)}, {}};
  trace.steps = {step_of({{0}, {1}}), step_of({{0}, {2}}), step_of({{0}, {1}})};
  trace.steps[0].phase = Phase::prefill;
  const CostModel cost{.link_gbps = 1.0,
                       .cpu_gbps = 2.0,
                       .gpu_gbps = 10.0,
                       .handshake_us = 100.0,
                       .copy_interference = 0.5};
  const ReplayResult result =
      replay(trace.header.shape, steps_of(trace), {.policy = PolicyKind::lru}, 0.25, cost);
  EXPECT_EQ(result.n_tokens, 2u);
  EXPECT_EQ(result.n_lookups, 4u);
  EXPECT_EQ(result.n_hits, 2u);
  EXPECT_EQ(result.n_copies, 2u) << "prefill's are not counted";
  EXPECT_EQ(result.copied_bytes, 2'000'000u);
  EXPECT_EQ(result.layer_hit_rate, (std::vector{1.0, 0.0}));
  EXPECT_DOUBLE_EQ(result.hit_rate(), 0.5);
  // A token: layer 0 hits, 1 MB at 10 GB/s; layer 1 misses, 1 MB at 2 GB/s, which the copy of
  // another 1 MB slows by half of that; the copy takes 1 ms.
  EXPECT_NEAR(result.time.gpu_ms, 0.1, 1e-9);
  EXPECT_NEAR(result.time.cpu_ms, 0.5 + 0.25, 1e-9);
  EXPECT_NEAR(result.time.handshake_ms, 0.1, 1e-9);
  EXPECT_NEAR(result.time.copy_ms, 1.0, 1e-9);
  EXPECT_NEAR(result.time.copy_wait_ms, 1.0 - (0.1 + 0.6 + 0.25), 1e-9);
  EXPECT_NEAR(result.time.total_ms, 1.0, 1e-9);
}

TEST(Replay, ACopyCostsWhatItTakesFromTheWorkers) {
  const CostModel cost{.cpu_gbps = 60, .gpu_gbps = 500, .copy_interference = 0.44};
  EXPECT_NEAR(cost.copy_cost(), 0.5, 1e-9);
  const CostModel no_gain{.cpu_gbps = 60, .gpu_gbps = 50};
  EXPECT_EQ(no_gain.copy_cost(), 0.0);
}

TEST(Replay, AnEmptyTraceHasNoFigures) {
  const RoutingTrace trace{{"empty", generator_shape(2, 4, 1)}, {}};
  const ReplayResult result = replay_at(trace, PolicyKind::mixture, 50);
  EXPECT_EQ(result.hit_rate(), 0.0);
  EXPECT_EQ(result.time.total_ms, 0.0);
}

TEST(Replay, EverythingResidentHitsAllButTheFirstUses) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(4, 16, 2), .n_decode = 100});
  const double most = belady_percent(trace, 100);
  for (const PolicyKind policy : kPolicies) {
    EXPECT_DOUBLE_EQ(hit_percent(trace, policy, 100), most) << policy_name(policy);
  }
}

// 100,000 tokens of 48 layers x 8 experts in 10 s is 100 us each. Processor time, since a test may
// share its core; a tenth of a second of it is enough to see.
TEST(Replay, AHundredThousandTokensTakeLessThanTenSeconds) {
  if (sluice::test::kSanitized) GTEST_SKIP() << "sanitizers change the speed";
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(48, 128, 8), .n_decode = 300});
  size_t n_steps = 0;
  const StepSource source = [&](RoutingStep& step) {
    if (n_steps == 6000) return false;
    step = trace.steps[n_steps++ % trace.steps.size()];
    return true;
  };
  const std::clock_t start = std::clock();
  const ReplayResult result = replay(trace.header.shape, source, {}, 0.25, {});
  const double us = 1e6 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC / 6000;
  std::printf("%.1f us per token, hit rate %.3f\n", us, result.hit_rate());
  EXPECT_LT(us, 100.0);
}

}  // namespace
}  // namespace sluice::policy::test
