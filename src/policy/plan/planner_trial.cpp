// See planner_trial.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_trial.h"

namespace sluice::policy {
namespace {

// The same wishes, and this mode.
Wishes with_mode(Wishes wishes, Mode mode) {
  switch (mode) {
    case Mode::all_resident:
    case Mode::streamed:
      wishes.moe = MoeWish::gpu;
      break;
    case Mode::expert_cache:
      wishes.moe = MoeWish::cache;
      break;
    case Mode::cpu_experts:
      wishes.moe = MoeWish::cpu;
      break;
    case Mode::cpu_only:
      wishes.n_gpu_layers = 0;
      break;
  }
  return wishes;
}

}  // namespace

std::vector<Plan> close_plans(const ModelShape& model, const Hardware& hardware,
                              const Wishes& wishes, const LocalityCurve& locality) {
  std::vector<Plan> plans = {make_plan(model, hardware, wishes, locality)};
  const Plan first = plans[0];
  // What is in VRAM as a whole has nothing to gain from a cache, or from the CPU's help.
  if (wishes.moe != MoeWish::automatic || first.mode == Mode::all_resident) return plans;
  const double close = first.forecast().speed.decode * (1.0 - kForecastError);
  for (const Forecast& forecast : first.forecasts) {
    if (!forecast.possible || forecast.mode == first.mode || forecast.speed.decode < close)
      continue;
    Plan plan = make_plan(model, hardware, with_mode(wishes, forecast.mode), locality);
    if (plan.mode == forecast.mode) plans.push_back(std::move(plan));
  }
  return plans;
}

}  // namespace sluice::policy
