// What route.cu and score_row.cu share: reading the router's weights, and its products.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_fp16.h>

#include "backend/cuda/route.h"
#include "backend/cuda/stripe_dot.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// Four weights of a row of the router, or of the shared expert's gate.
__device__ __forceinline__ float4 router_weights(const Route& p, int expert, int at) {
  if (at >= p.d_model) return {0, 0, 0, 0};
  if (expert == p.n_experts) return __ldg(reinterpret_cast<const float4*>(p.shared_gate + at));
  const int64_t i = static_cast<int64_t>(expert) * p.d_model + at;
  if (p.type == quant::Type::f32) {
    return __ldg(reinterpret_cast<const float4*>(static_cast<const float*>(p.weight) + i));
  }
  const uint2 two =
      __ldg(reinterpret_cast<const uint2*>(static_cast<const uint16_t*>(p.weight) + i));
  if (p.type == quant::Type::bf16) {
    return {__uint_as_float(two.x << 16), __uint_as_float(two.x & 0xffff0000u),
            __uint_as_float(two.y << 16), __uint_as_float(two.y & 0xffff0000u)};
  }
  return {half_bits(two.x & 0xffffu), half_bits(two.x >> 16), half_bits(two.y & 0xffffu),
          half_bits(two.y >> 16)};
}

__device__ __forceinline__ float multiply_add(float4 w, float4 g, float4 x, float acc) {
  acc = __fmaf_rn(w.x, __fmul_rn(g.x, x.x), acc);
  acc = __fmaf_rn(w.y, __fmul_rn(g.y, x.y), acc);
  acc = __fmaf_rn(w.z, __fmul_rn(g.z, x.z), acc);
  return __fmaf_rn(w.w, __fmul_rn(g.w, x.w), acc);
}

}  // namespace sluice::backend::cuda
