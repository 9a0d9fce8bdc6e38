// How attention's results leave a block: four values of a head at a time, as f32 and int8; what a
// split leaves for others to add; and all splits of a head, added in their order. Part of
// attend.cu.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend.h"
#include "backend/cuda/attend_parts.h"
#include "backend/cuda/segment.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// A split's sums for others to add: head_dim sums of a head, then its peak and its sum.
__device__ __forceinline__ float* partial_of(const Attend& p, int row, int head, int split) {
  return p.partials +
         ((static_cast<int64_t>(row) * p.n_heads + head) * kMaxSplits + split) * (p.head_dim + 4);
}

// Four values of a head, final: to f32, to int8, or both. By a whole warp.
__device__ __forceinline__ void write_four(const Attend& p, int row, int head, int at, float4 v) {
  const int column = head * p.head_dim + at;
  const bool is_in = at < p.head_dim;
  if (p.is_gated && is_in) v = gated(v, load_past_l1(p.qkv + p.gate_at(row, head) + at));
  if (p.out && is_in) {
    *reinterpret_cast<float4*>(p.out + static_cast<int64_t>(row) * p.n_heads * p.head_dim +
                               column) = v;
  }
  if (!p.out_int8) return;
  const int64_t block = static_cast<int64_t>(row) * p.out_int8.n_chunks * 8 + column / 32;
  quantize_segment({is_in ? v : float4{0, 0, 0, 0}},
                   {{p.out_int8.q + 32 * block + column % 32, p.out_int8.d + block,
                     p.out_int8.y + block, is_in}});
}

// All splits of a head, in their order, by one warp. The first parts are read with what they count:
// that takes as long as anything else here.
__device__ __forceinline__ void add_splits(const Attend& p, int row, int head, int n_splits,
                                           int lane) {
  constexpr int kAtOnce = 16;
  const float* const part = partial_of(p, row, head, 0);
  const auto value = [&](int k, int at) {
    return load_past_l1(part + min(k, n_splits - 1) * (p.head_dim + 4) + min(at, p.head_dim - 4));
  };
  float4 values[kAtOnce];
#pragma unroll
  for (int k = 0; k < kAtOnce; ++k) values[k] = value(k, 4 * lane);
  const float* const own = partial_of(p, row, head, min(lane, n_splits - 1)) + p.head_dim;
  const PartWeights all({__ldcg(own)}, {__ldcg(own + 1)}, n_splits);
#pragma unroll 1
  for (int at = 4 * lane; at - 4 * lane < p.head_dim; at += kSegment) {
    float4 total{0, 0, 0, 0};
#pragma unroll 1
    for (int first = 0; first < n_splits; first += kAtOnce) {
      if (first > 0 || at >= kSegment) {
#pragma unroll
        for (int k = 0; k < kAtOnce; ++k) values[k] = value(first + k, at);
      }
#pragma unroll
      for (int k = 0; k < kAtOnce; ++k) {
        const float weight = from_lane(all.weight, (first + k) % kWarp);  // 0 behind the last
        add_scaled(total, weight, values[k]);
      }
    }
    write_four(p, row, head, at, divided(total, all.sum.value));
  }
}

// The same of kFewSplits at most.
constexpr int kFewSplits = 4;
__device__ __forceinline__ void add_few_splits(const Attend& p, int row, int head, int n_splits,
                                               int lane) {
  const float* const part = partial_of(p, row, head, 0);
  const int stride = p.head_dim + 4;
  const float* const own = part + min(lane, n_splits - 1) * stride + p.head_dim;
  const PartWeights all({__ldcg(own)}, {__ldcg(own + 1)}, n_splits);
#pragma unroll 1
  for (int at = 4 * lane; at - 4 * lane < p.head_dim; at += kSegment) {
    float4 total{0, 0, 0, 0}, values[kFewSplits];
#pragma unroll
    for (int k = 0; k < kFewSplits; ++k) {
      values[k] = load_past_l1(part + min(k, n_splits - 1) * stride + min(at, p.head_dim - 4));
    }
#pragma unroll
    for (int k = 0; k < kFewSplits; ++k) {
      add_scaled(total, from_lane(all.weight, k), values[k]);  // 0 behind the last
    }
    write_four(p, row, head, at, divided(total, all.sum.value));
  }
}

// The same of kBlockColumns columns of a head from `first` on, with the same bits: four columns to
// a lane, and every eighth lane the same ones. Of four splits each reads one, for all of them.
constexpr int kBlockColumns = 32;
__device__ __forceinline__ void add_block_of_splits(const Attend& p, int row, int head, int first,
                                                    int n_splits, int lane) {
  constexpr int kLanes = kBlockColumns / 4, kGroups = kWarp / kLanes;
  constexpr int kRounds = kMaxSplits / kGroups;
  const int at = first + lane % kLanes * 4, group = lane / kLanes;
  const float* const part = partial_of(p, row, head, 0);
  const int stride = p.head_dim + 4;
  float4 values[kRounds];
#pragma unroll
  for (int i = 0; i < kRounds; ++i) {
    values[i] = load_past_l1(part + min(kGroups * i + group, n_splits - 1) * stride + at);
  }
  const float* const own = part + min(lane, n_splits - 1) * stride + p.head_dim;
  const PartWeights all({__ldcg(own)}, {__ldcg(own + 1)}, n_splits);
  float4 total{0, 0, 0, 0};
#pragma unroll
  for (int k = 0; k < kMaxSplits; ++k) {
    const int from = k % kGroups * kLanes + lane % kLanes;
    const float4 v{__shfl_sync(kAllLanes, values[k / kGroups].x, from),
                   __shfl_sync(kAllLanes, values[k / kGroups].y, from),
                   __shfl_sync(kAllLanes, values[k / kGroups].z, from),
                   __shfl_sync(kAllLanes, values[k / kGroups].w, from)};
    add_scaled(total, from_lane(all.weight, k), v);  // 0 behind the last
  }
  write_four(p, row, head, group == 0 ? at : p.head_dim, divided(total, all.sum.value));
}

// Rows from n_live on: zeros, and nothing is stored.
__device__ __forceinline__ void write_zeros(const Attend& p, int row, int first_head, int n_heads) {
#pragma unroll 1
  for (int h = warp_index(); h < n_heads; h += static_cast<int>(blockDim.x) / kWarp) {
    const int own = 4 * lane_index();
    for (int at = own; at - own < p.head_dim; at += kSegment) {
      write_four(p, row, first_head + h, at, {0, 0, 0, 0});
    }
  }
}

}  // namespace sluice::backend::cuda
