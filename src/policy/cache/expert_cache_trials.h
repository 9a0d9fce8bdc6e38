// Measures how well the policy's values predict uses. Some of the choices between a newcomer and
// its victim are followed for a few steps, whether or not the copy was made: how much more often
// was the newcomer used than the victim? Routing does not depend on what is resident, so both can
// be counted in either case.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::policy {

class CopyTrials {
 public:
  CopyTrials() : trials_(kSteps * kPerStep) {}

  // A step went by; `uses` counts the steps that used each expert so far.
  void begin_step(uint64_t step, std::span<const uint32_t> uses);

  // A choice of this step: `gain` is by how much the newcomer is likelier to be
  // used in a step, and it would stay for about `residence` steps.
  void choose(int newcomer, int victim, double gain, double residence,
              std::span<const uint32_t> uses);

  // Of the uses promised, the share that came.
  double kept() const { return came_ > 0.0 ? came_ / promised_ : 0.0; }

 private:
  static constexpr uint64_t kSteps = 16;      // for which a choice is followed at most
  static constexpr size_t kPerStep = 64;      // choices
  static constexpr size_t kEvery = 4;         // of all choices, one
  static constexpr double kRate = 1.0 / 256;  // at which what came long ago is forgotten
  // Start values: as if so many uses had been promised, and this share of them had come.
  static constexpr double kPriorUses = 100.0;
  static constexpr double kPriorShare = 0.25;

  struct Trial {
    uint64_t step;
    uint64_t end;
    int newcomer;
    int victim;
    double gain;
    int64_t lead;  // of the newcomer, in uses so far
  };

  static int64_t lead_of(const Trial& trial, std::span<const uint32_t> uses) {
    return static_cast<int64_t>(uses[static_cast<size_t>(trial.newcomer)]) -
           static_cast<int64_t>(uses[static_cast<size_t>(trial.victim)]);
  }

  std::vector<Trial> trials_;  // a ring, the oldest at begin_
  size_t begin_ = 0;
  size_t n_trials_ = 0;
  size_t n_in_step_ = 0;
  size_t n_choices_ = 0;
  uint64_t step_ = 0;
  double promised_ = kPriorUses;
  double came_ = kPriorUses * kPriorShare;
};

}  // namespace sluice::policy
