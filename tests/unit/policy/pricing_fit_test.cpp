// Rates from measurements: what the cost model predicts with known rates gives these rates back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/machine.h"
#include "policy/plan/fitted_rates.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

const Workload kWork{.k_type = KvType::q8_0, .v_type = KvType::f16, .prefill_chunk = 256};

Machine with_rates(double weights, double operations, double kv, double kv_prompt) {
  Machine machine = without_gpu();
  machine.cpu_gbps = weights;
  machine.cpu_gops = operations;
  machine.cpu_kv_gbps = kv;
  machine.cpu_kv_prompt_gbps = kv_prompt;
  return machine;
}

// What this machine would measure, by the cost model.
std::vector<MeasuredSteps> measured_on(const Machine& machine, const std::vector<Steps>& all) {
  std::vector<MeasuredSteps> measured;
  for (const Steps& steps : all) {
    measured.push_back({steps, predict_steps(qwen3_30b(), machine, kWork, steps)});
  }
  return measured;
}

MachineRates fitted_to(const std::vector<MeasuredSteps>& measured) {
  return fit_cpu_rates(qwen3_30b(), without_gpu(), kWork, measured);
}

TEST(FittedRates, AreThoseThatWouldHavePredictedTheMeasurement) {
  const Machine truth = with_rates(7.25, 93.0, 2.5, 40.0);
  for (const int least : {0, 2000}) {  // also where the least depth has keys and values to read
    const MachineRates fitted = fitted_to(measured_on(truth, {{false, 64, least},
                                                              {true, 256, least},
                                                              {false, 64, 4096},
                                                              {true, 256, 4096},
                                                              {true, 1024, 4096}}));
    EXPECT_NEAR(fitted.cpu_gbps, truth.cpu_gbps, 1e-3 * truth.cpu_gbps) << least;
    EXPECT_NEAR(fitted.cpu_gops, truth.cpu_gops, 1e-3 * truth.cpu_gops) << least;
    EXPECT_NEAR(fitted.cpu_kv_gbps, truth.cpu_kv_gbps, 1e-3 * truth.cpu_kv_gbps) << least;
    EXPECT_NEAR(fitted.cpu_kv_prompt_gbps, truth.cpu_kv_prompt_gbps, 0.04) << least;
  }
}

TEST(FittedRates, AreUnknownWhereNothingWasMeasured) {
  EXPECT_EQ(fitted_to({}), unmeasured_rates());
  const Machine truth = with_rates(7.25, 93.0, 2.5, 40.0);
  MachineRates fitted = fitted_to(measured_on(truth, {{false, 64, 0}, {true, 256, 0}}));
  EXPECT_GT(fitted.cpu_gbps, 0.0);
  EXPECT_GT(fitted.cpu_gops, 0.0);
  EXPECT_EQ(fitted.cpu_kv_gbps, 0.0) << "of one depth";
  EXPECT_EQ(fitted.cpu_kv_prompt_gbps, 0.0) << "of one depth";
  // A little deeper, and slower: that is noise.
  fitted = fitted_to({{{false, 64, 0}, 10.0}, {{false, 64, 100}, 8.0}});
  EXPECT_EQ(fitted.cpu_kv_gbps, 0.0);
  // Far deeper, and faster: so is that.
  fitted = fitted_to({{{false, 64, 0}, 10.0}, {{false, 64, 4096}, 11.0}});
  EXPECT_EQ(fitted.cpu_kv_gbps, 0.0);
  EXPECT_NEAR(fitted.cpu_gbps, fitted_to({{{false, 64, 0}, 10.0}}).cpu_gbps, 1e-6);
  fitted = fitted_to({{{true, 256, 0}, 50.0}, {{true, 256, 4096}, 50.1}});
  EXPECT_EQ(fitted.cpu_kv_prompt_gbps, 0.0);
  EXPECT_EQ(fitted.cpu_gbps, 0.0) << "prompts do not tell";
}

TEST(PredictedSteps, AreAsDeepAsAsked) {
  const Machine machine = with_rates(7.25, 93.0, 2.5, 40.0);
  const auto seconds = [&](bool is_prompt, int n_tokens, int depth) {
    return 1.0 / predict_steps(qwen3_30b(), machine, kWork, {is_prompt, n_tokens, depth});
  };
  // 48 layers of 4 heads, 128 values of K in q8_0 (136 bytes) and of V in f16 (256): by position.
  const double kv_bytes = 48 * 4 * (136 + 256);
  EXPECT_NEAR(seconds(false, 1, 64'000) - seconds(false, 1, 6'400), kv_bytes * 57'600 / 2.5e9,
              1e-9);
  EXPECT_NEAR(seconds(true, 256, 64'000) - seconds(true, 256, 6'400), kv_bytes * 57'600 / 40e9,
              1e-9);
  // 1024 tokens are four chunks of 256; the mean one begins 384 tokens deep.
  EXPECT_NEAR(seconds(true, 1024, 6'400), seconds(true, 256, 6'784), 1e-12);
}

TEST(LocalityOfAProfile, IsTheShareOfItsFavourites) {
  RoutingProfile profile(2, 16);
  std::vector<uint32_t> uses(32, 0);
  uses[3] = 75, uses[5] = 25;                     // of layer 0, two of sixteen
  for (size_t i = 16; i < 32; ++i) uses[i] = 10;  // layer 1 uses all alike
  profile.add_run(uses, 100);
  const LocalityCurve curve = LocalityCurve::of(profile);
  EXPECT_NEAR(curve.hits(1.0 / 16), (0.75 + 1.0 / 16) / 2, 1e-6);
  EXPECT_NEAR(curve.hits(2.0 / 16), (1.0 + 2.0 / 16) / 2, 1e-6);
  EXPECT_NEAR(curve.hits(0.5), (1.0 + 0.5) / 2, 1e-6);
  EXPECT_EQ(curve.hits(0.0), 0.0);
  EXPECT_EQ(curve.hits(1.0), 1.0);
}

// Q4_K of bench/results/gpu_kernels.md: 8 and 64 experts of 2.65 MB.
TEST(FittedRates, ExpertsCostALineOfAFixedPartAndBytes) {
  const ExpertCost h200 = fit_experts({8, 11.69e-6}, {64, 52.15e-6}, 2.654e6);
  EXPECT_NEAR(h200.fixed_us, 5.91, 0.01);
  EXPECT_NEAR(h200.gbps, 3673.0, 1.0);
  const ExpertCost noise = fit_experts({1, 2e-6}, {8, 1.9e-6}, 1e3);  // no line: the rate of many
  EXPECT_EQ(noise.fixed_us, 0.0);
  EXPECT_NEAR(noise.gbps, 8e3 / 1.9e3, 1e-9);
  const ExpertCost convex = fit_experts({1, 1e-6}, {8, 16e-6}, 1e3);
  EXPECT_EQ(convex.fixed_us, 0.0);
  EXPECT_NEAR(convex.gbps, 0.5, 1e-9);
  EXPECT_NEAR(fit_experts({1, 3e-6}, {1, 3e-6}, 3e3).gbps, 1.0, 1e-9);  // one expert is used
}

}  // namespace
}  // namespace sluice::policy::planner_test
