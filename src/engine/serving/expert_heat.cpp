// See expert_heat.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/expert_heat.h"

#include <cmath>

namespace sluice::engine {

constexpr float kHalfLifeTokens = 256.0f;

ExpertHeat::ExpertHeat(int n_layers, int n_experts)
    : n_experts_(n_experts),
      heat_(static_cast<size_t>(n_layers) * static_cast<size_t>(n_experts), 0.0f) {}

void ExpertHeat::add(const RoutingLog& log, int n_rows) {
  const float left = std::exp2(-static_cast<float>(n_rows) / kHalfLifeTokens);
  for (float& heat : heat_) heat *= left;
  for (int layer = 0; layer < log.n_layers(); ++layer) {
    for (const RoutedExpert& routed : log.routed(LayerId(layer))) {
      heat_[static_cast<size_t>(layer * n_experts_ + routed.expert.value)] += 1.0f;
    }
  }
}

}  // namespace sluice::engine
