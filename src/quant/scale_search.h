// The search for a good scale (and minimum) of one small group of weights, before these are
// themselves quantised. Shared by the encoders; tries a range of steps and fits each by least
// squares.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "quant/half.h"

namespace sluice::quant {

// A scale as f16: never infinite, and zero only for zero.
inline uint16_t narrow_scale(float scale) {
  if (scale == 0) return 0;
  return f32_to_f16(std::copysign(std::clamp(std::abs(scale), kMinF16, kMaxF16), scale));
}

// x is about scale*q - min, with q in 0..q_max and min >= 0.
struct Affine {
  float scale;
  float min;
};

// In all of this file n % 8 == 0 and n <= 32.
Affine fit_affine(const float* x, int n, int q_max);

// The least-squares scale and minimum for given q; q not all equal.
Affine refit_affine(const float* x, int n, const float* q);

// The scale, of either sign, of x ~ scale*q with q in q_min..q_max, q_min = -q_max - 1.
float fit_symmetric(const float* x, int n, int q_max);

// q = round((x + min) / scale), held to 0..q_max, as floats; all 0 for a scale of 0.
// Returns the squared error sum (scale*q - min - x)^2.
float quantize_affine(const float* x, int n, Affine fit, int q_max, float* q);

// q = round(x / scale), held to -q_max-1..q_max, as floats; all 0 for a scale of 0.
// Returns the squared error sum (scale*q - x)^2.
float quantize_symmetric(const float* x, int n, float scale, int q_max, float* q);

}  // namespace sluice::quant
