// See routing_log.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/routing_log.h"

namespace sluice::engine {

RoutingLog::RoutingLog(int n_layers, int max_rows, int n_used)
    : routed_(static_cast<size_t>(n_layers)), layers_(static_cast<size_t>(n_layers)) {
  for (auto& routed : routed_) routed.reserve(static_cast<size_t>(max_rows * n_used));
}

void RoutingLog::note(LayerId layer, int64_t n_rows, const backend::RoutingView& routing) {
  std::vector<policy::RoutedExpert>& routed = routed_[static_cast<size_t>(layer.value)];
  routed.clear();
  for (int64_t i = 0; i < n_rows * routing.n_used; ++i) {
    routed.push_back({ExpertId(routing.experts[i]), routing.weights[i]});
  }
}

}  // namespace sluice::engine
