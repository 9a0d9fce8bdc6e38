// Rows of a KV cache of any type on the device (backend/kv_page.h): a value of one, a head stored
// as one by a warp, and the rotation of keys that are stored in 4 bits. The bits are the CPU's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend_heads.h"
#include "backend/cuda/warp.cuh"
#include "backend/kv_page.h"
#include "backend/kv_rotation.h"

namespace sluice::backend::cuda {

using quant::Type;

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

__device__ inline void store_row(Type type, const float* head, int head_dim, int lane,
                                 const KvRow& row) {
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

// As rotate_head(), by one warp.
__device__ inline void rotate(float* head, int head_dim, int lane) {
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

}  // namespace sluice::backend::cuda
