// What a launcher needs to know of the card and the stream; asked for once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace sluice::backend::cuda {

struct Launch {
  cudaStream_t stream = nullptr;
  // From sm_90 on, where kernels are built for it: programmatic dependent launch, and blocks that
  // reach each other's shared memory.
  bool overlaps = false;
  bool clusters = false;
  bool has_group_products = false;  // of group_product.h: sm_90 alone
  int n_sms = 0;
  int shared_bytes = 0;   // that a block may ask for
  int shared_per_sm = 0;  // for all blocks on an SM
};

// Of the current device.
Launch launch_on(cudaStream_t stream);

}  // namespace sluice::backend::cuda
