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
  __device__ __forceinline__ int of(int stripe) const {
    int p = 0;
#pragma unroll 1
    while (p + 1 < n_parts && stripe >= parts[p + 1].first_stripe) ++p;
    return p;
  }
};

// out_column: of the first weight.
inline WeightParts weight_parts(const StripeWeight* weights, int n, int out_column) {
  WeightParts out{};
  out.n_parts = n;
  for (int i = 0; i < n; ++i) {
    CHECK(weights[i].n_rows > 0 && weights[i].n_rows % 8 == 0);
    out.parts[i] = {weights[i].data, weights[i].bias, out.n_stripes,
                    out_column + 8 * out.n_stripes};
    out.n_stripes += weights[i].n_rows / 8;
  }
  return out;
}

}  // namespace sluice::backend::cuda
