// See routing_log.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/routing_log.h"

#include <memory>

#include "base/step_memory.h"

namespace sluice::engine {

RoutingLog::RoutingLog(const backend::Allocate& memory, int n_layers, int max_rows, int n_used)
    : n_layers_(n_layers),
      max_rows_(static_cast<size_t>(max_rows)),
      n_used_(static_cast<size_t>(n_used)) {
  const auto n = static_cast<size_t>(n_layers);
  const size_t n_routed = n * max_rows_ * n_used_;
  static_assert(sizeof(backend::LayerLog) == 64 && sizeof(RoutedExpert) == 8);
  memory_ = memory(routing_log_bytes(n_layers, max_rows, n_used));
  counts_ = memory_.as<backend::LayerLog>();
  routed_ = reinterpret_cast<RoutedExpert*>(counts_ + n);
  std::uninitialized_value_construct_n(counts_, n);
  std::uninitialized_value_construct_n(routed_, n_routed);
}

void RoutingLog::note(LayerId layer, int64_t n_rows, const backend::RoutingView& routing) {
  const backend::LayerLogView log = view(layer);
  *log.counts = {.n_rows = static_cast<int32_t>(n_rows)};
  for (int64_t i = 0; i < n_rows * routing.n_used; ++i) {
    log.routed[i] = {ExpertId(routing.experts[i]), routing.weights[i]};
  }
}

}  // namespace sluice::engine
