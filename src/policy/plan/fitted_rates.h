// The CPU's rates by which the cost model would have predicted what was measured: so a measurement
// of one model speaks for another, and for contexts that were not tried.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "policy/plan/pricing_speed.h"

namespace sluice::policy {

struct MeasuredSteps {
  bool is_prompt = false;
  int n_tokens = 0;  // read together, or decoded one by one
  int depth = 0;     // tokens in the context before
  double tokens_per_second = 0.0;
};

// cpu_gbps by what was decoded, cpu_gops by prompts; as in `machine` where nothing speaks for it.
// The mean of all measurements, but prompts at the least depth alone: the model knows no cost of
// attention in a prompt. `work` says how keys and values are kept.
MachineRates fit_cpu_rates(const ModelShape& model, const Machine& machine, const Workload& work,
                           std::span<const MeasuredSteps> measured);

}  // namespace sluice::policy
