// Experts that a step must take in the place of those its router chooses: recorded routing, a trial
// that should route like text. They are data of the step, known before it begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <span>

#include "backend/buffer.h"
#include "base/ids.h"
#include "model/config.h"

namespace sluice::engine {

// Writes the experts of a row of the step, by rank; what it leaves at -1 the router decides.
using RouteOverride = std::function<void(LayerId layer, int64_t row, std::span<int32_t> experts)>;

class ForcedRoutes {
 public:
  // In memory that whoever computes the layers can read. `reroute` may be empty.
  ForcedRoutes(const backend::Allocate& memory, const model::Config& config, int max_rows,
               RouteOverride reroute)
      : reroute_(std::move(reroute)),
        n_layers_(config.n_layers),
        n_used_(static_cast<size_t>(config.n_experts_used)) {
    if (!reroute_) return;
    memory_ = memory(n_values(max_rows) * sizeof(int32_t));
  }

  bool any() const { return static_cast<bool>(reroute_); }

  // Before a step of that many rows, `width` with its padding; null: the router decides alone.
  const int32_t* fill(int64_t n_rows, int64_t width) {
    return any() ? fill(n_rows, width, memory_.as<int32_t>()) : nullptr;
  }
  // The same to another place.
  const int32_t* fill(int64_t n_rows, int64_t width, int32_t* to) {
    const std::span all(to, n_values(width));
    std::ranges::fill(all, -1);
    for (int layer = 0; layer < n_layers_; ++layer) {
      for (int64_t row = 0; row < n_rows; ++row) {
        const auto at = static_cast<size_t>(layer * width + row) * n_used_;
        reroute_(LayerId(layer), row, all.subspan(at, n_used_));
      }
    }
    return all.data();
  }

 private:
  size_t n_values(int64_t n_rows) const {
    return static_cast<size_t>(n_layers_ * n_rows) * n_used_;
  }

  RouteOverride reroute_;
  int n_layers_;
  size_t n_used_;
  backend::Buffer memory_;
};

}  // namespace sluice::engine
