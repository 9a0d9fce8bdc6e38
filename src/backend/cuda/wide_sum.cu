// The weighted sum of a wide step's expert outputs, in order of rank: see wide_experts.h.
//
// Mapping  a block for each row, a thread for four columns of every 1,024. Blocks also write the
// log
//          of their rows: over the link, which takes its time beside the sums.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

__device__ __forceinline__ float4 fma_four(float w, float4 v, float4 acc) {
  return {fma_rn(w, v.x, acc.x), fma_rn(w, v.y, acc.y), fma_rn(w, v.z, acc.z),
          fma_rn(w, v.w, acc.w)};
}

// As sum_by_rank() of combine.h, for four columns.
__device__ __forceinline__ float4 sum_by_rank(const float* weights, const float* outs, int n,
                                              int stride) {
  const float4 first = load_past_l1(outs);
  const float w = weights[0];
  float4 v{mul_rn(w, first.x), mul_rn(w, first.y), mul_rn(w, first.z), mul_rn(w, first.w)};
#pragma unroll 8
  for (int k = 1; k < n; ++k) v = fma_four(weights[k], load_past_l1(outs + stride * k), v);
  return v;
}

constexpr int kThreads = 256;

__device__ __forceinline__ void write_log(const SumPairs& p, int64_t r) {
  const int i = static_cast<int>(threadIdx.x);
  if (r == 0 && i < kWarp) {
    for (int word = i; word < p.n_words; word += kWarp) p.counts[word] = 0;
    __syncwarp();
    if (i == 0) *p.n_logged = p.n_rows;
  }
  if (i < p.n_used) {
    const int64_t slot = r * p.n_used + i;
    p.routed[slot] = {__ldcg(p.experts + slot), __ldcg(p.weights + slot)};
  }
}

__global__ void __launch_bounds__(kThreads) sum_pairs_kernel(const __grid_constant__ SumPairs p) {
  wait_for_previous_kernel();
  let_next_kernel_begin();
  const int64_t r = static_cast<int64_t>(blockIdx.x), n_routed = int64_t{p.n_rows} * p.n_used;
  if (p.counts) write_log(p, r);
  const float* const weights = p.weights + r * p.n_used;
  const float* const outs = p.outs + r * p.n_used * p.d_model;
  for (int c = 4 * static_cast<int>(threadIdx.x); c < p.d_model; c += 4 * kThreads) {
    float4 v = sum_by_rank(weights, outs + c, p.n_used, p.d_model);
    if (p.shared_weights) {
      const float4 shared = load_past_l1(p.outs + (n_routed + r) * p.d_model + c);
      v = fma_four(p.shared_weights[r], shared, v);
    }
    auto* const x = reinterpret_cast<float4*>(p.x + r * p.d_model + c);
    const float4 old = *x;
    *x = {add_rn(old.x, v.x), add_rn(old.y, v.y), add_rn(old.z, v.z), add_rn(old.w, v.w)};
  }
}

}  // namespace

void sum_pairs(const SumPairs& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_used >= 1 && p.n_used <= kThreads);
  CHECK(p.d_model >= 1 && p.d_model % 4 == 0);
  launch(sum_pairs_kernel, dim3(static_cast<unsigned>(p.n_rows)), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
