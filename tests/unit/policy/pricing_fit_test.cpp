// Rates from measurements: what the cost model predicts with known rates gives these rates back.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/plan/fitted_rates.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

Speed speed_with(const Machine& machine, const Workload& work) {
  const ModelShape model = qwen3_30b();
  return predict(model, machine, work, {.n_gpu_layers = 0, .n_slots = std::vector<int>(48)},
                 LocalityCurve::typical());
}

TEST(FittedRates, AreThoseThatWouldHavePredictedTheMeasurement) {
  Machine truth = without_gpu();
  truth.cpu_gbps = 7.25;
  truth.cpu_gops = 93.0;
  const Workload work{.k_type = KvType::q8_0, .v_type = KvType::f16};
  Workload shallow = work, deep = work, prompt = work;
  shallow.n_ctx = 32;
  deep.n_ctx = 1000 + 32;
  prompt.n_ctx = 1, prompt.prefill_chunk = 256;
  const std::vector<MeasuredSteps> measured = {
      {false, 64, 0, speed_with(truth, shallow).decode},
      {false, 64, 1000, speed_with(truth, deep).decode},
      {true, 256, 0, speed_with(truth, prompt).prefill},
      {true, 256, 4096, 0.1}};  // attention took most of it: not what a chunk costs
  const MachineRates fitted = fit_cpu_rates(qwen3_30b(), without_gpu(), work, measured);
  EXPECT_NEAR(fitted.cpu_gbps, truth.cpu_gbps, 1e-4 * truth.cpu_gbps);
  EXPECT_NEAR(fitted.cpu_gops, truth.cpu_gops, 1e-4 * truth.cpu_gops);
}

TEST(FittedRates, StayWhereNothingWasMeasured) {
  Machine machine = without_gpu();
  machine.cpu_gops = 55.0;
  const MachineRates same = fit_cpu_rates(qwen3_30b(), machine, {}, {});
  EXPECT_EQ(same, static_cast<MachineRates>(machine));
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

}  // namespace
}  // namespace sluice::policy::planner_test
