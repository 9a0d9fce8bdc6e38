// The ExpertRunner of a device that holds some of the experts: hands the layer's table to the
// device, whose operations look up, ask for and add up; and keeps what was routed, for the policy.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/ops.h"
#include "engine/expert_slots.h"
#include "model/expert_runner.h"
#include "policy/routing.h"

namespace sluice::engine {

class DeviceExperts final : public model::ExpertRunner {
 public:
  DeviceExperts(backend::Ops& ops, const model::Model& model, const ExpertSlots& slots)
      : ops_(ops), model_(model), slots_(slots), routed_(model.layers().size()) {}

  void run(LayerId layer, const backend::ExpertInputView& a, const backend::RoutingView& routing,
           backend::RowsView x) override;

  // Of the layer in the last step: n_used for each row, best first.
  std::span<const policy::RoutedExpert> routed(LayerId layer) const {
    return routed_[static_cast<size_t>(layer.value)];
  }

 private:
  backend::Ops& ops_;
  const model::Model& model_;
  const ExpertSlots& slots_;
  std::vector<std::vector<policy::RoutedExpert>> routed_;  // by layer
};

}  // namespace sluice::engine
