// The weights of one launch of a projection, their stripes one behind the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/project.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {

// Stripes of one weight among those of a launch.
struct Part {
  const uint8_t* data;
  const float* bias;
  int first_stripe;  // of all stripes of the launch
  int out_column;    // of its first row
};

struct WeightParts {
  Part parts[kMaxProjections];
  int n_parts;
  int n_stripes;

  // The part that a stripe is of.
  __device__ __forceinline__ const Part& of(int stripe) const {
    int p = 0;
#pragma unroll 1
    while (p + 1 < n_parts && stripe >= parts[p + 1].first_stripe) ++p;
    return parts[p];
  }
};

inline void add_part(WeightParts& to, const StripeWeight& weight) {
  CHECK(weight.n_rows > 0 && weight.n_rows % 8 == 0 && to.n_parts < kMaxProjections);
  to.parts[to.n_parts++] = {weight.data, weight.bias, to.n_stripes, weight.out_column};
  to.n_stripes += weight.n_rows / 8;
}

}  // namespace sluice::backend::cuda
