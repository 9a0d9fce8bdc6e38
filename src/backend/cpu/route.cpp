// See route.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/route.h"

#include <algorithm>

#include "backend/cpu/softmax.h"

namespace sluice::backend::cpu {

void choose_experts(std::span<float> scores, bool renormalize, std::span<int32_t> experts,
                    std::span<float> weights) {
  softmax(scores);

  // Insertion into a short sorted list; a later equal probability does not pass an earlier one.
  const size_t n_used = experts.size();
  size_t n_found = 0;
  for (size_t e = 0; e < scores.size(); ++e) {
    size_t rank = n_found;
    while (rank > 0 && scores[e] > weights[rank - 1]) --rank;
    if (rank == n_used) continue;
    n_found = std::min(n_found + 1, n_used);
    for (size_t i = n_found - 1; i > rank; --i) {
      experts[i] = experts[i - 1];
      weights[i] = weights[i - 1];
    }
    experts[rank] = static_cast<int32_t>(e);
    weights[rank] = scores[e];
  }

  if (!renormalize) return;
  float total = 0.0f;
  for (const float w : weights) total += w;
  total = std::max(total, 0x1p-14f);
  for (float& w : weights) w /= total;
}

}  // namespace sluice::backend::cpu
