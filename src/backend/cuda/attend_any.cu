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
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/kv_rotation.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kTile = 128;  // positions, and threads
constexpr int kMostOwn = kMostHeadDim / kTile;

Launch alone(Launch how) {
  how.overlaps = false;
  return how;
}

// ---- Rows of the cache.

struct KvRow {
  uint8_t* values;
  uint16_t* scales;
};

__device__ __forceinline__ KvRow row_at(uint8_t* data, const KvPage& page, int id, int kv_head,
                                        int token) {
  return {data + page.row_at(id, kv_head, token),
          reinterpret_cast<uint16_t*>(data + page.scales_of(id, kv_head, token))};
}

__device__ __forceinline__ float kv_value(Type type, const KvRow& row, int i) {
  switch (type) {
    case Type::f32:
      return reinterpret_cast<const float*>(row.values)[i];
    case Type::f16:
      return half_bits(reinterpret_cast<const uint16_t*>(row.values)[i]);
    case Type::bf16:
      return as_float(uint32_t{reinterpret_cast<const uint16_t*>(row.values)[i]} << 16);
    case Type::q8_0:
      return mul_rn(half_bits(row.scales[i / 32]), to_float(static_cast<int8_t>(row.values[i])));
    default: {
      const int both = row.values[i / 32 * 16 + i % 16];
      return mul_rn(half_bits(row.scales[i / 32]),
                    to_float((i % 32 < 16 ? both & 15 : both >> 4) - 8));
    }
  }
}

// The value of the largest magnitude in a block, the first of equals, in all lanes.
__device__ __forceinline__ float peak_of_lanes(float v) {
  uint32_t most = bits_of(v) & 0x7fffffffu;
#pragma unroll
  for (int mask = 16; mask > 0; mask /= 2) {
    most = max(most, __shfl_xor_sync(kAllLanes, most, mask));
  }
  const unsigned equal = __ballot_sync(kAllLanes, (bits_of(v) & 0x7fffffffu) == most);
  return __shfl_sync(kAllLanes, v, __ffs(static_cast<int>(equal)) - 1);
}

__device__ __forceinline__ float held(float v, float low, float high) {
  return fminf(fmaxf(v, low), high);
}

// A block of 32 values, one to a lane, as quant::encode_row has it.
__device__ __forceinline__ void store_q8_0(float v, int block, int lane, const KvRow& row) {
  constexpr float kMost = 65504.0f;
  const float most = fabsf(peak_of_lanes(v));
  uint32_t bits = to_f16(fminf(div_rn(most, 127.0f), kMost));
  if (most > mul_rn(127.5f, half_bits(bits)) && half_bits(bits) < kMost) ++bits;
  const float d = half_bits(bits), inverse = d > 0.0f ? div_rn(1.0f, d) : 0.0f;
  const int q = to_nearest(held(mul_rn(v, inverse), -127.0f, 127.0f));
  row.values[32 * block + lane] = static_cast<uint8_t>(static_cast<int8_t>(q));
  if (lane == 0) row.scales[block] = static_cast<uint16_t>(bits);
}

// The same search for a scale as quant/scale_search.cpp has: 19 steps from 1.06 to 0.70 of the one
// that just covers the range. Its sums are the warp's.
__device__ __forceinline__ void store_q4_0(float v, int block, int lane, const KvRow& row) {
  constexpr float kMost = 8.0f * 65504.0f;
  constexpr int kSteps = 19;
  v = held(v, -kMost, kMost);
  const float extreme = peak_of_lanes(v);
  float scale = div_rn(extreme, -8.0f), gain = -1.0f;
  for (int k = 0; extreme != 0.0f && k < kSteps; ++k) {
    const float step = 1.06f - 0.36f * static_cast<float>(k) / (kSteps - 1);
    const float inverse = div_rn(-8.0f, mul_rn(extreme, step));
    const float q = to_float(to_nearest(held(mul_rn(v, inverse), -8.0f, 7.0f)));
    const float qq = warp_sum(q * q), xq = warp_sum(v * q);
    if (xq * xq > gain * qq) {
      gain = xq * xq / qq;
      scale = xq / qq;
    }
  }
  uint32_t bits = to_f16(held(scale, -65504.0f, 65504.0f));
  if (scale != 0.0f && (bits & 0x7fffu) == 0) bits |= 1;
  const float d = half_bits(bits), inverse = d != 0.0f ? div_rn(1.0f, d) : 0.0f;
  const int q = to_nearest(held(mul_rn(v, inverse), -8.0f, 7.0f)) + 8;
  const int upper = __shfl_down_sync(kAllLanes, q, 16);
  if (lane < 16) row.values[16 * block + lane] = static_cast<uint8_t>(q | upper << 4);
  if (lane == 0) row.scales[block] = static_cast<uint16_t>(bits);
}

__device__ void store_row(Type type, const float* head, int head_dim, int lane, const KvRow& row) {
  for (int i = lane; i < head_dim; i += kWarp) {
    const float v = head[i];
    if (type == Type::f32) {
      reinterpret_cast<float*>(row.values)[i] = v;
    } else if (type == Type::f16 || type == Type::bf16) {
      reinterpret_cast<uint16_t*>(row.values)[i] = type == Type::f16 ? to_f16(v) : to_bf16(v);
    } else {
      type == Type::q8_0 ? store_q8_0(v, i / kWarp, lane, row)
                         : store_q4_0(v, i / kWarp, lane, row);
    }
  }
}

// ---- Heads.

// As rotate_head(), by one warp.
__device__ void rotate(float* head, int head_dim, int lane) {
  const int n = rotation_block(head_dim);
  const float factor = div_rn(1.0f, sqrt_rn(static_cast<float>(n)));
  for (int i = lane; i < head_dim; i += kWarp) {
    if (rotation_flips(i % n)) head[i] = -head[i];
  }
  __syncwarp();
  for (int apart = 1; apart < n; apart *= 2) {
    for (int i = lane; i < head_dim / 2; i += kWarp) {
      const int at = i / apart * 2 * apart + i % apart;
      const float a = head[at], b = head[at + apart];
      head[at] = add_rn(a, b);
      head[at + apart] = sub_rn(a, b);
    }
    __syncwarp();
  }
  for (int i = lane; i < head_dim; i += kWarp) head[i] = mul_rn(head[i], factor);
  __syncwarp();
}

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
    if (i < dim) of.out[at + i] = div_rn(acc[k], sum);
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
