// See fitted_rates.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/fitted_rates.h"

#include <algorithm>
#include <cmath>

#include "base/machine.h"

namespace sluice::policy {
namespace {

// Between what the slowest and the fastest machine have, in 10^9 bytes or operations/s.
constexpr double kLeastRate = 1e-3;
constexpr double kMostRate = 1e6;
// Tokens: of less, attention takes no longer than a measurement is uncertain.
constexpr int kLeastDeeper = 512;
// A rate of weights and one of keys and values, each found with the other: at half the depth, each
// round halves what is left of the error.
constexpr int kRounds = 24;

class Fit {
 public:
  Fit(const ModelShape& model, const Machine& machine, const Workload& work)
      : model_(model), work_(work), machine_(machine) {}

  // Both stay unknown (0) where there is nothing to fit them to.
  void fit(std::span<const MeasuredSteps> measured, double MachineRates::*weights,
           double MachineRates::*kv) {
    if (measured.empty()) return;
    const int least = std::ranges::min(measured, {}, depth_of).steps.depth;
    std::vector<MeasuredSteps> shallow, deep;
    for (const MeasuredSteps& m : measured) {
      if (m.steps.depth == least) shallow.push_back(m);
      if (m.steps.depth >= least + kLeastDeeper) deep.push_back(m);
    }
    machine_.*kv = 0.0;
    machine_.*weights = fitting(shallow, weights);
    double found = 0.0;
    for (int i = 0; i < kRounds && !deep.empty(); ++i) {
      found = machine_.*kv = fitting(deep, kv);
      machine_.*weights = fitting(shallow, weights);
    }
    if (found > 0.9 * kMostRate) {  // not slower for being deeper: noise, that says nothing
      found = machine_.*kv = 0.0;
      machine_.*weights = fitting(shallow, weights);
    }
    rates_.*weights = machine_.*weights;
    rates_.*kv = found;
  }

  const MachineRates& rates() const { return rates_; }

 private:
  static int depth_of(const MeasuredSteps& m) { return m.steps.depth; }

  // The geometric mean of the rates that give each measurement.
  double fitting(std::span<const MeasuredSteps> measured, double MachineRates::*rate) const {
    double log_sum = 0.0;
    for (const MeasuredSteps& m : measured) log_sum += std::log(solve(m, rate));
    return std::exp(log_sum / static_cast<double>(measured.size()));
  }

  // By halving: the speed never falls with a rate. To a part in ten million.
  double solve(const MeasuredSteps& m, double MachineRates::*rate) const {
    Machine machine = machine_;
    double least = kLeastRate, most = kMostRate;
    while (most / least > 1.0000001) {
      machine.*rate = std::sqrt(least * most);
      const bool is_slower = predict_steps(model_, machine, work_, m.steps) < m.tokens_per_second;
      (is_slower ? least : most) = machine.*rate;
    }
    return std::sqrt(least * most);
  }

  const ModelShape& model_;
  const Workload& work_;
  Machine machine_;  // with what was found so far
  MachineRates rates_ = unmeasured_rates();
};

}  // namespace

double predict_steps(const ModelShape& model, const Machine& machine, const Workload& work,
                     const Steps& steps, const Placement& place, const LocalityCurve& locality) {
  Workload as_asked = work;
  if (steps.is_prompt) as_asked.prefill_chunk = std::min(work.prefill_chunk, steps.n_tokens);
  const int n_alike = steps.is_prompt ? steps.n_tokens - as_asked.prefill_chunk : steps.n_tokens;
  as_asked.n_ctx = as_asked.depth = steps.depth + n_alike / 2;  // of the mean token, or chunk
  const Speed all = predict(model, machine, as_asked, place, locality);
  return steps.is_prompt ? all.prefill : all.decode;
}

double predict_steps(const ModelShape& model, const Machine& machine, const Workload& work,
                     const Steps& steps) {
  const Placement on_cpu{.n_gpu_layers = 0, .n_slots = std::vector<int>(model.layers.size())};
  Machine steps_alone = machine;
  steps_alone.sampling_us = 0.0;  // measured steps end with their logits
  return predict_steps(model, steps_alone, work, steps, on_cpu, LocalityCurve::typical());
}

MachineRates fit_cpu_rates(const ModelShape& model, const Machine& machine, const Workload& work,
                           std::span<const MeasuredSteps> measured) {
  std::vector<MeasuredSteps> decoded, prompts;
  for (const MeasuredSteps& m : measured) (m.steps.is_prompt ? prompts : decoded).push_back(m);
  Fit fit(model, machine, work);
  fit.fit(decoded, &MachineRates::cpu_gbps, &MachineRates::cpu_kv_gbps);
  fit.fit(prompts, &MachineRates::cpu_gops, &MachineRates::cpu_kv_prompt_gbps);
  return fit.rates();
}

ExpertCost fit_experts(TimedExperts few, TimedExperts many, double expert_bytes) {
  const ExpertCost by_bytes{many.n * expert_bytes / std::max(many.seconds, 1e-9) * 1e-9, 0.0};
  if (many.n <= few.n) return by_bytes;
  const double each = (many.seconds - few.seconds) / (many.n - few.n);
  const double fixed = few.seconds - few.n * each;
  if (each <= 0.0 || fixed <= 0.0) return by_bytes;
  return {expert_bytes / each * 1e-9, fixed * 1e6};
}

}  // namespace sluice::policy
