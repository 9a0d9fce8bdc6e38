// Part D of the numeric contract for one output: the experts' outputs, weighted, in order of rank
// (in a kernel as in g++: lanes.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

// w_0 o_0 + w_1 o_1 + ..., n of them, each added to those before. outs: [n, stride], of this
// column.
SLUICE_LANE_FN float sum_by_rank(const float* weights, const float* outs, int n, int stride) {
  float v = mul_rn(weights[0], outs[0]);
  SLUICE_UNROLL_4 for (int k = 1; k < n; ++k) v = fma_rn(weights[k], outs[stride * k], v);
  return v;
}

}  // namespace sluice::backend::cuda
