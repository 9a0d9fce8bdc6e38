// The end of gate_up: SwiGLU and the quantisation of a block of hidden values, by one warp.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.cuh"
#include "backend/cuda/int8_rows.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// Hidden values 32 * block .. of a pair. dots: [gate, up][32].
__device__ __forceinline__ void write_hidden(const Int8Rows& h, int slot, int block,
                                             const float* dots, int lane) {
  const float value = swiglu(dots[lane], dots[32 + lane]);
  const float peak = __uint_as_float(warp_max(__float_as_uint(value) & 0x7fffffffu));
  const bool is_zero = peak < 0x1p-100f;
  const int rounded = is_zero ? 0 : __float2int_rn(__fmul_rn(value, __fdiv_rn(127.0f, peak)));
  const int sum = warp_add(rounded);
  const int64_t at = static_cast<int64_t>(slot) * h.n_chunks * 8 + block;
  h.q[32 * at + lane] = static_cast<int8_t>(rounded);
  if (lane > 0) return;
  const float step = is_zero ? 0.0f : __fmul_rn(peak, 1.0f / 127.0f);
  h.d[at] = step;
  h.y[at] = __fmul_rn(step, static_cast<float>(sum));
}

}  // namespace sluice::backend::cuda
