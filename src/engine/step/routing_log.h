// What a step routed, and where its experts were found; and a runner that writes down what another
// one is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backend/device_ops.h"
#include "model/expert_runner.h"
#include "policy/trace/routing.h"

namespace sluice::engine {

// Puts other experts in the place of those that the router chose.
using RouteOverride =
    std::function<void(LayerId layer, int64_t n_rows, const backend::RoutingView& routing)>;

class RoutingLog {
 public:
  RoutingLog(int n_layers, int max_rows, int n_used);

  void begin_step() { ++step_; }
  uint32_t step() const { return step_; }
  void note(LayerId layer, int64_t n_rows, const backend::RoutingView& routing);

  // n_used for each row, best first.
  std::span<const policy::RoutedExpert> routed(LayerId layer) const {
    return routed_[static_cast<size_t>(layer.value)];
  }
  int n_layers() const { return static_cast<int>(routed_.size()); }
  backend::LayerLog& layer(LayerId layer) { return layers_[static_cast<size_t>(layer.value)]; }

 private:
  uint32_t step_ = 0;
  std::vector<std::vector<policy::RoutedExpert>> routed_;  // by layer
  std::vector<backend::LayerLog> layers_;
};

class WatchedExperts final : public model::ExpertRunner {
 public:
  // All outlive it.
  WatchedExperts(model::ExpertRunner& inner, RoutingLog& log, const RouteOverride& reroute)
      : inner_(inner), log_(log), reroute_(reroute) {}

  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override {
    if (reroute_) reroute_(layer, a.n_rows, routing);
    log_.note(layer, a.n_rows, routing);
    inner_.run(layer, a, routing, x);
  }

 private:
  model::ExpertRunner& inner_;
  RoutingLog& log_;
  const RouteOverride& reroute_;
};

}  // namespace sluice::engine
