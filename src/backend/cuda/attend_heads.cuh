// One head of a row of qkv in shared memory, by one warp: normalised and turned where it is a query
// or a key. Part of attend.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/attend.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

enum class HeadKind { query, key, value };

__device__ __forceinline__ uint16_t to_f16(float x) { return __half_as_ushort(__float2half_rn(x)); }

__device__ __forceinline__ uint16_t to_bf16(float x) {  // nearest, ties to even
  const unsigned bits = __float_as_uint(x);
  return static_cast<uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

// Sum of squares of n values, by one warp, in one order.
__device__ __forceinline__ float sum_of_squares(const float* x, int n, int lane) {
  float sum = 0.0f;
#pragma unroll 4
  for (int i = lane; i < n; i += kWarp) {
    const float v = __ldcg(x + i);
    sum = __fmaf_rn(v, v, sum);
  }
  return warp_sum(sum);
}

// (x0, x1) -> (x0 cos - x1 sin, x0 sin + x1 cos), for pairs lane, lane + 32, ...
template <int n>
__device__ __forceinline__ void turn(const Attend& p, const float (&cos)[n], const float (&sin)[n],
                                     float* head, int lane) {
#pragma unroll
  for (int k = 0; k < n; ++k) {
    const int j = lane + kWarp * k;
    if (j >= p.n_pairs) break;
    float& a = head[p.pairs_are_adjacent ? 2 * j : j];
    float& b = head[p.pairs_are_adjacent ? 2 * j + 1 : j + p.n_pairs];
    const float x0 = a, x1 = b;
    a = __fsub_rn(__fmul_rn(x0, cos[k]), __fmul_rn(x1, sin[k]));
    b = __fadd_rn(__fmul_rn(x0, sin[k]), __fmul_rn(x1, cos[k]));
  }
  __syncwarp();
}

// out: [dims], zero behind head_dim.
template <int dims>
__device__ __forceinline__ void make_head(const Attend& p, int row, HeadKind kind, int head,
                                          float* out, int lane) {
  const int n_before = kind == HeadKind::query ? 0
                       : kind == HeadKind::key ? p.n_heads
                                               : p.n_heads + p.n_kv_heads;
  const float* const all = p.qkv +
                           static_cast<int64_t>(row) * (p.n_heads + 2 * p.n_kv_heads) * p.head_dim +
                           static_cast<int64_t>(n_before) * p.head_dim;
  const float* const own = all + head * p.head_dim;
  const float* weight = kind == HeadKind::query ? p.q_norm : p.k_norm;
  const bool is_whole = p.head_norm == NormOfHeads::whole;
  const bool has_norm = kind != HeadKind::value && p.head_norm != NormOfHeads::none;
  if (is_whole) weight += head * p.head_dim;
  // All that is read, at once.
  constexpr int kOwn = dims / kWarp, kPairs = (dims / 2 + kWarp - 1) / kWarp;
  float x[kOwn], w[kOwn], cos[kPairs], sin[kPairs];
  const float* const angles = p.angles + static_cast<int64_t>(row) * 2 * p.n_pairs;
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    const int i = lane + kWarp * k;
    x[k] = i < p.head_dim ? __ldcg(own + i) : 0.0f;
    w[k] = has_norm && i < p.head_dim ? __ldg(weight + i) : 0.0f;
  }
#pragma unroll
  for (int k = 0; k < kPairs; ++k) {
    const int j = lane + kWarp * k;
    const bool turns = kind != HeadKind::value && j < p.n_pairs;
    cos[k] = turns ? __ldg(angles + j) : 0.0f;
    sin[k] = turns ? __ldg(angles + p.n_pairs + j) : 0.0f;
  }
  float scale = 1.0f;
  if (has_norm) {
    const int n =
        is_whole ? (kind == HeadKind::query ? p.n_heads : p.n_kv_heads) * p.head_dim : p.head_dim;
    float squares = 0.0f;
#pragma unroll
    for (int k = 0; k < kOwn; ++k) squares = __fmaf_rn(x[k], x[k], squares);
    squares = is_whole ? sum_of_squares(all, n, lane) : warp_sum(squares);
    scale =
        __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(__fdiv_rn(squares, static_cast<float>(n)), p.eps)));
  }
#pragma unroll
  for (int k = 0; k < kOwn; ++k) {
    out[lane + kWarp * k] = has_norm ? __fmul_rn(__fmul_rn(x[k], scale), w[k]) : x[k];
  }
  __syncwarp();
  if (kind != HeadKind::value) turn<kPairs>(p, cos, sin, out, lane);
}

}  // namespace sluice::backend::cuda
