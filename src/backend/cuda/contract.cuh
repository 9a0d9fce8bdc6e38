// The numeric contract's float steps on the device. Every operation is an intrinsic with a rounding
// of its own, so nothing here can be contracted, reordered or flushed to zero: the bits are those
// of quant/ on the CPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::backend::cuda {

// EXP of part C: exp(t) for t clamped to [-87, 88].
__device__ inline float contract_exp(float t) {
  t = fminf(fmaxf(t, -87.0f), 88.0f);
  constexpr float kMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  const float n = __fsub_rn(__fmaf_rn(t, 1.44269504088896341f, kMagic), kMagic);
  float r = __fmaf_rn(n, -0.693359375f, t);
  r = __fmaf_rn(n, 2.12194440e-4f, r);
  float p = 1.9875691500e-4f;
  p = __fmaf_rn(p, r, 1.3981999507e-3f);
  p = __fmaf_rn(p, r, 8.3334519073e-3f);
  p = __fmaf_rn(p, r, 4.1665795894e-2f);
  p = __fmaf_rn(p, r, 1.6666665459e-1f);
  p = __fmaf_rn(p, r, 5.0000001201e-1f);
  const float e = __fadd_rn(__fmaf_rn(p, __fmul_rn(r, r), r), 1.0f);
  return __int_as_float(__float_as_int(e) + (static_cast<int>(n) << 23));
}

// Part C: (g / (1 + EXP(-g))) * u.
__device__ inline float swiglu(float g, float u) {
  return __fmul_rn(__fdiv_rn(g, __fadd_rn(1.0f, contract_exp(-g))), u);
}

}  // namespace sluice::backend::cuda
