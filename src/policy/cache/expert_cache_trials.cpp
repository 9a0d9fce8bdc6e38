// See expert_cache_trials.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/expert_cache_trials.h"

#include <algorithm>

namespace sluice::policy {

void CopyTrials::begin_step(uint64_t step, std::span<const uint32_t> uses) {
  step_ = step;
  n_in_step_ = 0;
  promised_ += kRate * (kPriorUses - promised_);
  came_ += kRate * (kPriorUses * kPriorShare - came_);
  for (; n_trials_ > 0 && trials_[begin_].end <= step; --n_trials_) {
    const Trial& trial = trials_[begin_];
    promised_ += trial.gain * static_cast<double>(step - trial.step);
    came_ += static_cast<double>(lead_of(trial, uses) - trial.lead);
    begin_ = (begin_ + 1) % trials_.size();
  }
}

void CopyTrials::choose(int newcomer, int victim, double gain, double residence,
                        std::span<const uint32_t> uses) {
  if (n_choices_++ % kEvery != 0 || n_in_step_ == kPerStep) return;
  ++n_in_step_;
  Trial& trial = trials_[(begin_ + n_trials_++) % trials_.size()];
  const uint64_t n_steps = std::clamp(static_cast<uint64_t>(residence), uint64_t{1}, kSteps);
  trial = {step_, step_ + n_steps, newcomer, victim, gain, 0};
  trial.lead = lead_of(trial, uses);
}

}  // namespace sluice::policy
