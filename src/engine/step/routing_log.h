// What a step routed, and where its experts were found; and a runner that writes down what another
// one is asked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backend/device_ops.h"
#include "model/expert_runner.h"
#include "policy/trace/routing.h"

namespace sluice::engine {

class RoutingLog {
 public:
  // In memory that whoever computes the layers can write.
  RoutingLog(const backend::Allocate& memory, int n_layers, int max_rows, int n_used);

  void begin_step() { ++step_; }
  uint32_t step() const { return step_; }
  void note(LayerId layer, int64_t n_rows, const backend::RoutingView& routing);

  // n_used for each row, best first.
  std::span<const RoutedExpert> routed(LayerId layer) const {
    const backend::LayerLogView log = view(layer);
    return {log.routed, static_cast<size_t>(log.counts->n_rows) * n_used_};
  }
  int n_layers() const { return n_layers_; }
  backend::LayerLog& layer(LayerId layer) const { return *view(layer).counts; }
  backend::LayerLogView view(LayerId layer) const {
    const auto i = static_cast<size_t>(layer.value);
    return {counts_ + i, routed_ + i * max_rows_ * n_used_};
  }

 private:
  int n_layers_;
  size_t max_rows_, n_used_;
  uint32_t step_ = 0;
  backend::Buffer memory_;
  backend::LayerLog* counts_;  // [n_layers]
  RoutedExpert* routed_;       // [n_layers, max_rows, n_used]
};

class WatchedExperts final : public model::ExpertRunner {
 public:
  // All outlive it.
  WatchedExperts(model::ExpertRunner& inner, RoutingLog& log) : inner_(inner), log_(log) {}

  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override {
    log_.note(layer, a.n_rows, routing);
    inner_.run(layer, a, routing, x);
  }

 private:
  model::ExpertRunner& inner_;
  RoutingLog& log_;
};

}  // namespace sluice::engine
