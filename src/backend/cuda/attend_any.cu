// Attention over a KV cache of any types (attend_any.h).
//
// Layout   pages as in backend/kv_page.h, keys of q4_0 rotated (kv_rotation.h).
// Mapping  heads: a warp has a head of a row, in shared memory: norm, rope, rotation, and its place
//          in the cache. Attention: a block has a query, and goes through the positions before it,
//          128 at a time, with a running maximum.
// Limits   heads of at most 256 values; launched without overlap.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/attend_any.h"

#include "backend/cuda/attend_heads.h"
#include "backend/cuda/contract.h"
#include "backend/cuda/kv_rows.cuh"
#include "backend/cuda/launch.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kTile = 128;  // positions, and threads
constexpr int kMostOwn = kMostHeadDim / kTile;

Launch alone(Launch how) {
  how.overlaps = false;
  return how;
}

// ---- Heads.

__global__ void __launch_bounds__(kWarp, 1) heads_kernel(const __grid_constant__ AttendAny p) {
  __shared__ float head[kMostHeadDim];
  const Attend& of = p.of;
  const int r = static_cast<int>(blockIdx.y), h = static_cast<int>(blockIdx.x);
  const int lane = static_cast<int>(threadIdx.x);
  if (p.n_live && r >= *p.n_live) return;
  const HeadKind kind = h < of.n_heads                   ? HeadKind::query
                        : h < of.n_heads + of.n_kv_heads ? HeadKind::key
                                                         : HeadKind::value;
  const int own = kind == HeadKind::query ? h
                  : kind == HeadKind::key ? h - of.n_heads
                                          : h - of.n_heads - of.n_kv_heads;
  Attend shape = of;
  shape.eps = kind == HeadKind::query ? p.q_eps : p.k_eps;
  make_head<kMostHeadDim>(shape, r, kind, own, head);
  if (kind != HeadKind::value && rotates_keys(p.k_type)) rotate(head, of.head_dim, lane);
  if (kind == HeadKind::query) {
    float* const out = p.queries + (static_cast<int64_t>(r) * of.n_heads + own) * of.head_dim;
    for (int i = lane; i < of.head_dim; i += kWarp) out[i] = head[i];
    return;
  }
  const int position = of.positions[r];
  const int id = of.page_table[of.sequences[r] * of.table_stride + (position >> of.page_shift)];
  const int token = position & ((1 << of.page_shift) - 1);
  const bool is_key = kind == HeadKind::key;
  store_row(is_key ? p.k_type : p.v_type, head, of.head_dim, lane,
            row_at(is_key ? of.k : of.v, is_key ? p.k_page : p.v_page, id, own, token));
}

// ---- Attention.

// Over all threads of the block; room: one float a warp.
template <typename Join>
__device__ __forceinline__ float of_block(float v, float* room, const Join& join) {
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) v = join(v, __shfl_xor_sync(kAllLanes, v, mask));
  __syncthreads();
  if (lane_index() == 0) room[warp_index()] = v;
  __syncthreads();
  v = room[0];
  for (int k = 1; k < kTile / kWarp; ++k) v = join(v, room[k]);
  return v;
}

__global__ void __launch_bounds__(kTile, 1) attend_kernel(const __grid_constant__ AttendAny p) {
  __shared__ float query[kMostHeadDim], weights[kTile], room[kTile / kWarp];
  const Attend& of = p.of;
  const int r = static_cast<int>(blockIdx.y), h = static_cast<int>(blockIdx.x);
  const int own = static_cast<int>(threadIdx.x), dim = of.head_dim;
  const int64_t at = (static_cast<int64_t>(r) * of.n_heads + h) * dim;
  if (p.n_live && r >= *p.n_live) {
    for (int i = own; i < dim; i += kTile) of.out[at + i] = 0.0f;
    return;
  }
  for (int i = own; i < dim; i += kTile) query[i] = p.queries[at + i];
  __syncthreads();
  const int kv_head = h / (of.n_heads / of.n_kv_heads);
  const int32_t* const pages = of.page_table + of.sequences[r] * of.table_stride;
  const int n = of.positions[r] + 1, in_page = (1 << of.page_shift) - 1;
  const float scale = div_rn(1.0f, sqrt_rn(static_cast<float>(dim)));
  float most = -INFINITY, sum = 0.0f, acc[kMostOwn] = {};
  for (int first = 0; first < n; first += kTile) {
    const int t = first + own;
    float score = -INFINITY;
    if (t < n) {
      const KvRow key = row_at(of.k, p.k_page, pages[t >> of.page_shift], kv_head, t & in_page);
      score = 0.0f;
      for (int i = 0; i < dim; ++i) score = fma_rn(query[i], kv_value(p.k_type, key, i), score);
      score = mul_rn(score, scale);
    }
    const auto larger = [](float a, float b) { return fmaxf(a, b); };
    const float now = fmaxf(most, of_block(score, room, larger));
    const float weight = t < n ? expf(score - now) : 0.0f;
    const float shrinks = expf(most - now);
    weights[own] = weight;
    sum = sum * shrinks + of_block(weight, room, [](float a, float b) { return a + b; });
    most = now;
#pragma unroll
    for (int k = 0; k < kMostOwn; ++k) {
      const int i = own + kTile * k;
      if (i >= dim) break;
      float v = acc[k] * shrinks;
      for (int j = 0; j < min(kTile, n - first); ++j) {
        const int pos = first + j;
        const KvRow value =
            row_at(of.v, p.v_page, pages[pos >> of.page_shift], kv_head, pos & in_page);
        v = fma_rn(weights[j], kv_value(p.v_type, value, i), v);
      }
      acc[k] = v;
    }
    __syncthreads();
  }
#pragma unroll
  for (int k = 0; k < kMostOwn; ++k) {
    const int i = own + kTile * k;
    if (i >= dim) break;
    const float v = div_rn(acc[k], sum);
    of.out[at + i] = of.is_gated ? mul_rn(v, sigmoid(of.qkv[of.gate_at(r, h) + i])) : v;
  }
}

}  // namespace

void attend_any(const AttendAny& p, const Launch& how) {
  const Attend& of = p.of;
  CHECK(of.n_rows >= 1 && of.head_dim <= kMostHeadDim && of.n_heads % of.n_kv_heads == 0);
  const auto n_rows = static_cast<unsigned>(of.n_rows);
  launch(heads_kernel, dim3(static_cast<unsigned>(of.n_heads + 2 * of.n_kv_heads), n_rows), kWarp,
         0, alone(how), p);
  launch(attend_kernel, dim3(static_cast<unsigned>(of.n_heads), n_rows), kTile, 0, alone(how), p);
}

}  // namespace sluice::backend::cuda
