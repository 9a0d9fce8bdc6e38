// The contract's dot product of float rows (quant/dot.h), eight lanes to a pair, a chain to each.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/warp.cuh"
#include "quant/type.h"

namespace sluice::backend::cuda {

constexpr int kChains = 8;

template <quant::Type type>
__device__ __forceinline__ float float_weight(const void* row, int64_t i) {
  if constexpr (type == quant::Type::f32) return __ldg(static_cast<const float*>(row) + i);
  const uint16_t bits = __ldg(static_cast<const unsigned short*>(row) + i);
  return type == quant::Type::f16 ? half_bits(bits) : __uint_as_float(uint32_t{bits} << 16);
}

// row . x[k], of n columns, for n_inputs rows x that stand n apart; in all lanes of the eight.
template <quant::Type type, int n_inputs>
__device__ __forceinline__ void float_dots(const void* row, const float* x, int n, int chain,
                                           float (&dots)[n_inputs]) {
#pragma unroll
  for (float& dot : dots) dot = 0.0f;
#pragma unroll 4
  for (int c = chain; c < n; c += kChains) {
    const float w = float_weight<type>(row, c);
#pragma unroll
    for (int k = 0; k < n_inputs; ++k) {
      dots[k] = __fmaf_rn(w, __ldcg(x + static_cast<int64_t>(k) * n + c), dots[k]);
    }
  }
#pragma unroll
  for (float& dot : dots) {
#pragma unroll
    for (int mask = kChains / 2; mask > 0; mask /= 2) {
      dot = __fadd_rn(dot, __shfl_xor_sync(kAllLanes, dot, mask));
    }
  }
}

// call.operator()<type>(), for float types. Host code.
template <typename Call>
void with_float_type(quant::Type type, const Call& call) {
  using quant::Type;
  if (type == Type::f32) return call.template operator()<Type::f32>();
  if (type == Type::f16) return call.template operator()<Type::f16>();
  return call.template operator()<Type::bf16>();
}

}  // namespace sluice::backend::cuda
