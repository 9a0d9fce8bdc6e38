// Stripes of quantised weights that reached the device as rows: those whose rows are no multiple of
// eight, which the host does not weave. The last stripe is filled up with rows of zeros.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/device.h"
#include "backend/views.h"

namespace sluice::backend::cuda {

class CudaWoven {
 public:
  explicit CudaWoven(Device& device) : device_(device) {}

  // Made at the first call, through the host; the same copy afterwards. Its n_rows are whole
  // stripes.
  WeightView stripes_of(const WeightView& rows);

 private:
  struct Copy {
    const std::byte* rows;
    Buffer stripes;
  };

  Device& device_;
  std::vector<Copy> copies_;
};

}  // namespace sluice::backend::cuda
