// Which plans are tried before one of them is chosen.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_trial.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

Hardware trial_machine(double link_gbps, double cpu_gbps) {
  Hardware h;
  h.vram_free = 8 * kGiB;
  h.ram_free = 64 * kGiB;
  h.gpu_gbps = 400.0;
  h.link_gbps = link_gbps;
  h.cpu_gbps = cpu_gbps;
  h.n_cores = 8;
  return h;
}

TEST(PlannerTrial, ModesThatTheForecastCannotTellApartAreTried) {
  const ModelShape model = qwen3_30b();
  bool any_close = false, any_clear = false;
  for (const double link : {3.0, 12.0, 25.0, 55.0}) {
    for (const double cpu : {10.0, 20.0, 40.0, 80.0}) {
      const Hardware h = trial_machine(link, cpu);
      const std::vector<Plan> plans = close_plans(model, h, {});
      const Plan chosen = make_plan(model, h, {});
      ASSERT_FALSE(plans.empty());
      EXPECT_EQ(plans[0].mode, chosen.mode);
      const double best = chosen.forecast().speed.decode;
      for (const Forecast& f : chosen.forecasts) {
        const bool is_close = f.possible && f.speed.decode >= best * (1.0 - kForecastError);
        const bool is_tried = std::ranges::any_of(plans, [&](const Plan& p) {
          // On its own it may have another chunk, and a few slots more or fewer.
          return p.mode == f.mode &&
                 std::abs(p.forecast().speed.decode / f.speed.decode - 1.0) <= 2.0 * kChunkLoss;
        });
        EXPECT_EQ(is_tried, is_close)
            << "link " << link << ", CPU " << cpu << ", " << mode_name(f.mode);
      }
      (plans.size() > 1 ? any_close : any_clear) = true;
    }
  }
  EXPECT_TRUE(any_close && any_clear);
}

TEST(PlannerTrial, NothingIsTriedWhereEverythingFits) {
  Hardware h = trial_machine(25.0, 25.0);
  h.vram_free = 48 * kGiB;
  const std::vector<Plan> plans = close_plans(qwen3_30b(), h, {});
  ASSERT_EQ(plans.size(), 1u);
  EXPECT_EQ(plans[0].mode, Mode::all_resident);
}

TEST(PlannerTrial, AWishForAModeLeavesNothingToTry) {
  for (const MoeWish moe : {MoeWish::cache, MoeWish::cpu, MoeWish::gpu}) {
    Wishes wishes;
    wishes.moe = moe;
    EXPECT_EQ(close_plans(qwen3_30b(), trial_machine(25.0, 25.0), wishes).size(), 1u);
  }
}

}  // namespace
}  // namespace sluice::policy::planner_test
