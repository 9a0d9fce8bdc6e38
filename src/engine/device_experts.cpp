// See device_experts.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device_experts.h"

namespace sluice::engine {

void DeviceExperts::run(LayerId layer, const backend::ExpertInputView& a,
                        const backend::RoutingView& routing, backend::RowsView x) {
  backend::ExpertsView experts = model_.layers()[static_cast<size_t>(layer.value)].experts;
  experts.layer = layer;
  experts.table = slots_.table(layer);
  ops_.experts(experts, a, routing, x);

  std::vector<policy::RoutedExpert>& routed = routed_[static_cast<size_t>(layer.value)];
  routed.clear();
  for (int64_t i = 0; i < a.n_rows * routing.n_used; ++i) {
    routed.push_back({ExpertId(routing.experts[i]), routing.weights[i]});
  }
}

}  // namespace sluice::engine
