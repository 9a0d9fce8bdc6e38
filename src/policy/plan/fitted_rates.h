// The rates by which the cost model would have predicted what was measured: so a measurement of one
// model speaks for another, and for contexts that were not tried.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "policy/plan/pricing_speed.h"

namespace sluice::policy {

struct Steps {
  bool is_prompt = false;
  int n_tokens = 0;  // read together, or decoded one by one
  int depth = 0;     // tokens in the context before
};

struct MeasuredSteps {
  Steps steps;
  double tokens_per_second = 0.0;
};

// Tokens/s of steps, wherever the model is, at the depth of their mean token or chunk.
double predict_steps(const ModelShape& model, const Machine& machine, const Workload& work,
                     const Steps& steps, const Placement& place, const LocalityCurve& locality);

// Tokens/s of steps on the CPU alone. `work` says how keys and values are kept, and in which chunks
// a prompt is read; its context and depth do not matter.
double predict_steps(const ModelShape& model, const Machine& machine, const Workload& work,
                     const Steps& steps);

// What decoding and prompts at the least depth say of weights (cpu_gbps, cpu_gops), and what those
// far deeper say of keys and values (cpu_kv_gbps, cpu_kv_prompt_gbps): the mean of all. As
// unmeasured_rates() has it where nothing speaks for a rate; `machine` stands in meanwhile.
MachineRates fit_cpu_rates(const ModelShape& model, const Machine& machine, const Workload& work,
                           std::span<const MeasuredSteps> measured);

// A straight line through two measurements of a layer's experts on a device: what they cost besides
// their bytes, and the rate of these. No such cost where the times do not show one.
struct TimedExperts {
  int n = 0;
  double seconds = 0.0;
};
struct ExpertCost {
  double gbps = 0.0;
  double fixed_us = 0.0;
};
ExpertCost fit_experts(TimedExperts few, TimedExperts many, double expert_bytes);

}  // namespace sluice::policy
