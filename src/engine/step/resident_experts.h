// The simplest ExpertRunner: all experts stand in memory the trunk's backend can read, and it
// computes them itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ops.h"
#include "model/expert_runner.h"
#include "model/model.h"

namespace sluice::engine {

class ResidentExperts final : public model::ExpertRunner {
 public:
  ResidentExperts(backend::Ops& ops, const model::Model& model) : ops_(ops), model_(model) {}

  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override {
    ops_.experts(model_.layers()[static_cast<size_t>(layer.value)].experts, a, routing, x);
  }

 private:
  backend::Ops& ops_;
  const model::Model& model_;
};

}  // namespace sluice::engine
