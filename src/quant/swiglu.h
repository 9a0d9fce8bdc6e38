// Part C of the numeric contract (docs/decisions/0002): SwiGLU with an exp of our own, made of
// mul, add, fma and one integer add, so that every machine gives the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "quant/round.h"

namespace sluice::quant {

// exp(t) with t clamped to [-87, 88], within 1.1 ulp of the true value there. NaN counts as -87.
//
//   n = round(t * log2 e),  r = t - n ln 2,  exp(t) = 2^n * (1 + r + r^2 p(r))
//
// The coefficients are those of Cephes' expf; ln 2 is split so that n * kLn2Hi is exact.
inline float contract_exp(float t) {
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2Hi = 0.693359375f;
  constexpr float kLn2Lo = -2.12194440e-4f;
  t = t > -87.0f ? t : -87.0f;
  t = t < 88.0f ? t : 88.0f;
  const float n = std::fma(t, kLog2e, kRoundingMagic) - kRoundingMagic;
  float r = std::fma(n, -kLn2Hi, t);
  r = std::fma(n, -kLn2Lo, r);
  float p = 1.9875691500e-4f;
  p = std::fma(p, r, 1.3981999507e-3f);
  p = std::fma(p, r, 8.3334519073e-3f);
  p = std::fma(p, r, 4.1665795894e-2f);
  p = std::fma(p, r, 1.6666665459e-1f);
  p = std::fma(p, r, 5.0000001201e-1f);
  const float e = std::fma(p, r * r, r) + 1.0f;
  // e is in [0.7, 1.42] and n in [-126, 127]: the exponent field neither wraps nor reaches 0.
  const uint32_t shift = static_cast<uint32_t>(static_cast<int32_t>(n)) << 23;
  return std::bit_cast<float>(std::bit_cast<uint32_t>(e) + shift);
}

inline float sigmoid(float x) { return 1.0f / (1.0f + contract_exp(-x)); }

// h[i] = (g / (1 + EXP(-g))) * u; gate, up and h have the same length. h may be gate or up.
void swiglu(std::span<const float> gate, std::span<const float> up, float* h);

}  // namespace sluice::quant
