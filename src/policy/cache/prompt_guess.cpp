// See prompt_guess.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/prompt_guess.h"

#include <algorithm>
#include <utility>

namespace sluice::policy {

void PromptGuess::learn(int n_used, int n_experts) {
  used_share_ = static_cast<double>(n_used) / std::max(n_experts, 1);
}

// At rank r of n the chance is 1 - 2 (1 - share) r / n: its mean is the share.
int PromptGuess::n_sure(int n_experts) const {
  const double unused = 1.0 - used_share_;
  if (unused <= (1.0 - kSure) / 2.0) return n_experts;
  if (used_share_ == 0.0) return 0;
  return static_cast<int>(n_experts * (1.0 - kSure) / (2.0 * unused));
}

void sort_by_heat(std::span<ExpertId> experts, std::span<const uint32_t> uses) {
  std::ranges::sort(experts, [uses](ExpertId a, ExpertId b) {
    const uint32_t of_a = uses[static_cast<size_t>(a.value)];
    const uint32_t of_b = uses[static_cast<size_t>(b.value)];
    return of_a != of_b ? of_a > of_b : a.value < b.value;
  });
}

}  // namespace sluice::policy
