// The math asks for a layer's experts through this; where they run is decided behind it (engine/).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/views.h"
#include "base/ids.h"

namespace sluice::model {

class ExpertRunner {
 public:
  virtual ~ExpertRunner() = default;

  // x[r] += sum_k w_k expert_k(a[r]) (+ the shared expert), as the numeric contract says.
  virtual void run(LayerId layer, const backend::ExpertInputView& a,
                   const backend::RoutingView& routing, backend::RowsView x) = 0;
};

}  // namespace sluice::model
