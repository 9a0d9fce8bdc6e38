// The weighted sum of a wide step's expert outputs, in order of rank: see wide_experts.h.
//
// Mapping  a block for each row, a thread for every 256th of its columns.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/combine.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void __launch_bounds__(kThreads) sum_pairs_kernel(const __grid_constant__ SumPairs p) {
  wait_for_previous_kernel();
  const int64_t r = static_cast<int64_t>(blockIdx.x), n_routed = int64_t{p.n_rows} * p.n_used;
  const float* const weights = p.weights + r * p.n_used;
  const float* const outs = p.outs + r * p.n_used * p.d_model;
  for (int c = static_cast<int>(threadIdx.x); c < p.d_model; c += kThreads) {
    float v = sum_by_rank(weights, outs + c, p.n_used, p.d_model);
    if (p.shared_weights) {
      v = __fmaf_rn(p.shared_weights[r], p.outs[(n_routed + r) * p.d_model + c], v);
    }
    float* const x = p.x + r * p.d_model + c;
    *x = __fadd_rn(*x, v);
  }
}

}  // namespace

void sum_pairs(const SumPairs& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_used >= 1 && p.d_model >= 1);
  launch(sum_pairs_kernel, dim3(static_cast<unsigned>(p.n_rows)), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
