// Which experts of a prompt's layer are worth copying before its routing is known: the hottest, as
// far down as nearly all of them will be used.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace sluice::policy {

class PromptGuess {
 public:
  // At a step's begin nothing is known of how many experts its rows use.
  void begin_step() { used_share_ = 0.0; }
  // Of a layer that was routed.
  void learn(int n_used, int n_experts);

  // Of a layer's experts, hottest first, so many may come without asking. Were the share of layers
  // before as it is here, and did an expert's chance of being used fall evenly from the hottest,
  // which is used for sure, to the coldest, then each of these is used with a chance of kSure.
  int n_sure(int n_experts) const;

  static constexpr double kSure = 0.9;

 private:
  double used_share_ = 0.0;  // of the last layer's experts
};

// The hottest first, by how often each expert of a layer was used; the lower one where that is
// equal.
void sort_by_heat(std::span<ExpertId> experts, std::span<const uint32_t> uses);

}  // namespace sluice::policy
