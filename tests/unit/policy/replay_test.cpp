// The replay: figures checked by hand.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/replay.h"

#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

TEST(Replay, TimesAndBytesAreAsCountedByHand) {
  RoutingTrace trace{{"tiny", generator_shape(2, 4, 1, 1'000'000)}, {}};
  trace.steps = {step_of({{0}, {1}}), step_of({{0}, {2}}), step_of({{0}, {1}})};
  trace.steps[0].phase = Phase::prefill;
  const CostModel cost{{.link_gbps = 1.0,
                        .cpu_gbps = 2.0,
                        .gpu_gbps = 10.0,
                        .handshake_us = 100.0,
                        .copy_interference = 0.5}};
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

TEST(Replay, ServesManyMachinesAsItServesEachAlone) {
  const RoutingTrace trace = generate_trace({.shape = generator_shape(4, 16, 2), .n_decode = 100});
  std::vector<CostModel> machines(4);
  machines[1].link_gbps = 0.5;
  machines[2].cpu_gbps = 5.0;
  machines[3] = {{.gpu_gbps = 90.0, .handshake_us = 300.0}, /*streams_misses=*/true};
  Replay together(trace.header.shape, {.copy_cost = 0.5}, 0.2, machines);
  for (const RoutingStep& step : trace.steps) together.step(step);
  for (size_t m = 0; m < machines.size(); ++m) {
    const ReplayResult alone =
        replay(trace.header.shape, steps_of(trace), {.copy_cost = 0.5}, 0.2, machines[m]);
    const ReplayResult shared = together.result(m);
    EXPECT_EQ(shared.n_hits, alone.n_hits) << m;
    EXPECT_EQ(shared.n_copies, alone.n_copies) << m;
    EXPECT_EQ(shared.copied_bytes, alone.copied_bytes) << m;
    EXPECT_EQ(shared.layer_hit_rate, alone.layer_hit_rate) << m;
    EXPECT_EQ(shared.time.total_ms, alone.time.total_ms) << m;
    EXPECT_EQ(shared.time.copy_wait_ms, alone.time.copy_wait_ms) << m;
  }
  EXPECT_LT(together.result(0).time.total_ms, together.result(1).time.total_ms);
  EXPECT_LT(together.result(0).time.total_ms, together.result(2).time.total_ms);
}

// As in the first test; a miss now waits for its copy of 1 ms and takes 0.1 ms on the GPU.
TEST(Replay, StreamedMissesWaitForTheLinkAndLeaveTheCpuAlone) {
  RoutingTrace trace{{"tiny", generator_shape(2, 4, 2, 1'000'000)}, {}};
  trace.steps = {step_of({{0}, {1}}), step_of({{0}, {1, 2}})};
  trace.steps[0].phase = Phase::prefill;
  const CostModel cost{{.link_gbps = 1.0, .cpu_gbps = 2.0, .gpu_gbps = 10.0, .handshake_us = 20.0},
                       /*streams_misses=*/true};
  const ReplayResult result =
      replay(trace.header.shape, steps_of(trace), {.policy = PolicyKind::lru}, 0.25, cost);
  EXPECT_EQ(result.n_hits, 2u);
  EXPECT_EQ(result.n_copies, 1u);
  EXPECT_EQ(result.copied_bytes, 1'000'000u) << "whether it stays or not";
  EXPECT_EQ(result.time.cpu_ms, 0.0);
  EXPECT_NEAR(result.time.gpu_ms, 0.3, 1e-9);
  EXPECT_NEAR(result.time.handshake_ms, 0.02, 1e-9);
  EXPECT_NEAR(result.time.copy_ms, 1.0, 1e-9);
  EXPECT_NEAR(result.time.copy_wait_ms, 1.0 - (0.1 - 0.02), 1e-9) << "layer 1's hit goes on beside";
  EXPECT_NEAR(result.time.total_ms, 0.1 + 1.02 + 0.1, 1e-9);
}

TEST(Replay, AProfileIsResidentFromTheStart) {
  RoutingTrace trace{{"tiny", generator_shape(1, 4, 1)}, {}};
  trace.steps = {step_of({{2}}), step_of({{3}}), step_of({{2}})};
  RoutingProfile profile(1, 4);
  profile.add_run(std::vector<uint32_t>{1, 0, 5, 0}, 6);
  const CostModel cost;
  const auto n_hits = [&](const RoutingProfile* known) {
    Replay replay(trace.header.shape, {.policy = PolicyKind::lfu, .max_copy_bytes = 0}, 0.25,
                  std::span(&cost, 1), known);
    for (const RoutingStep& step : trace.steps) replay.step(step);
    EXPECT_EQ(replay.result().n_copies, 0u);
    return replay.result().n_hits;
  };
  EXPECT_EQ(n_hits(nullptr), 0u);
  EXPECT_EQ(n_hits(&profile), 2u);
}

TEST(Replay, ACopyCostsWhatItTakesFromTheWorkers) {
  const CostModel cost{{.cpu_gbps = 60, .gpu_gbps = 500, .copy_interference = 0.44}};
  EXPECT_NEAR(cost.copy_cost(), 0.5, 1e-9);
  const CostModel no_gain{{.cpu_gbps = 60, .gpu_gbps = 50}};
  EXPECT_EQ(no_gain.copy_cost(), 0.0);
}

TEST(Replay, ACopyThatIsWaitedForCostsTheLinksTime) {
  const CostModel cost{{.link_gbps = 12.5, .cpu_gbps = 50, .gpu_gbps = 250}};
  EXPECT_NEAR(cost.wait_cost(), 5.0, 1e-9);  // 0.08 ns a byte, of which a use saves 0.016
  CostModel streaming = cost;
  streaming.streams_misses = true;
  EXPECT_EQ(streaming.wait_cost(), 0.0) << "misses cross the link anyway";
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

}  // namespace
}  // namespace sluice::policy::test
