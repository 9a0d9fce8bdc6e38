// Part A of the numeric contract (docs/decisions/0002): activations as blocks of 32 int8 values
// with an f32 scale. The router's input and the SwiGLU output both go through this one function.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace sluice::quant {

// One quantised row of n values, n % 32 == 0. The owner of the three arrays outlives the view.
struct ActivationView {
  const int8_t* q;  // [n], |q| <= 127
  const float* d;   // [n/32], x is about d*q
  const float* y;   // [n/32], d * sum of the block's q
};

// x.size() % 32 == 0; q, d, y as above. Non-finite x is outside the contract (the result is then
// meaningless, but the call is safe).
void quantize_activation(std::span<const float> x, int8_t* q, float* d, float* y);

}  // namespace sluice::quant
