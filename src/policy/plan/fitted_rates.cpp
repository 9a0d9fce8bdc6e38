// See fitted_rates.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/fitted_rates.h"

#include <algorithm>
#include <cmath>

namespace sluice::policy {
namespace {

// The rate that gives the speed; speed(rate) never falls. To a part in a million, between what the
// slowest and the fastest machine have.
template <typename SpeedOf>
double solve(double speed, double least, double most, const SpeedOf& speed_of) {
  for (int i = 0; i < 60 && most / least > 1.000001; ++i) {
    const double middle = std::sqrt(least * most);
    (speed_of(middle) < speed ? least : most) = middle;
  }
  return std::sqrt(least * most);
}

struct Mean {
  double log_sum = 0.0;
  int n = 0;
  void add(double value) { log_sum += std::log(value), ++n; }
  double value() const { return std::exp(log_sum / n); }
};

}  // namespace

MachineRates fit_cpu_rates(const ModelShape& model, const Machine& machine, const Workload& work,
                           std::span<const MeasuredSteps> measured) {
  Machine fitted = machine;
  const Placement on_cpu{.n_gpu_layers = 0, .n_slots = std::vector<int>(model.layers.size())};
  const auto speed = [&](const MeasuredSteps& steps) {
    Workload as_measured = work;
    as_measured.n_ctx = std::max(steps.depth + (steps.is_prompt ? 0 : steps.n_tokens / 2), 1);
    if (steps.is_prompt) as_measured.prefill_chunk = steps.n_tokens;
    const Speed all = predict(model, fitted, as_measured, on_cpu, LocalityCurve::typical());
    return steps.is_prompt ? all.prefill : all.decode;
  };
  Mean gbps, gops;
  int least_depth = -1;
  for (const MeasuredSteps& steps : measured) {
    if (steps.is_prompt) {
      least_depth = least_depth < 0 ? steps.depth : std::min(least_depth, steps.depth);
    } else {
      gbps.add(solve(steps.tokens_per_second, 1e-3, 1e5, [&](double rate) {
        fitted.cpu_gbps = rate;
        return speed(steps);
      }));
    }
  }
  fitted.cpu_gbps = gbps.n > 0 ? gbps.value() : machine.cpu_gbps;
  for (const MeasuredSteps& steps : measured) {
    if (!steps.is_prompt || steps.depth != least_depth) continue;
    gops.add(solve(steps.tokens_per_second, 1e-3, 1e8, [&](double rate) {
      fitted.cpu_gops = rate;
      return speed(steps);
    }));
  }
  fitted.cpu_gops = gops.n > 0 ? gops.value() : machine.cpu_gops;
  return fitted;
}

}  // namespace sluice::policy
