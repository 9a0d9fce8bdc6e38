// See activation.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/activation.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "quant/blocks.h"
#include "quant/round.h"

namespace sluice::quant {
namespace {

// Below this a block counts as zero: 127 / amax stays far from overflow.
constexpr float kZeroFloor = 0x1p-100f;
constexpr float kInverse127 = 1.0f / 127.0f;

// The integer maximum of sign-cleared bit patterns: no rounding, no order, no NaN rules.
float largest_magnitude(const float* x) {
  uint32_t largest = 0;
  for (int i = 0; i < kBlock; ++i) {
    largest = std::max(largest, std::bit_cast<uint32_t>(x[i]) & 0x7fffffffu);
  }
  return std::bit_cast<float>(largest);
}

// id = 127/amax, q = round(x*id), d = amax * f32(1/127), y = d * sum q
void quantize_block(const float* x, int8_t* q, float& d, float& y) {
  const float amax = largest_magnitude(x);
  if (amax < kZeroFloor) {
    std::fill_n(q, kBlock, int8_t{0});
    d = y = 0.0f;
    return;
  }
  const float id = 127.0f / amax;
  int32_t sum = 0;
  for (int i = 0; i < kBlock; ++i) {
    const int32_t rounded = round_half_even(x[i] * id);
    q[i] = static_cast<int8_t>(rounded);
    sum += q[i];
  }
  d = amax * kInverse127;
  y = d * static_cast<float>(sum);
}

}  // namespace

void quantize_activation(std::span<const float> x, int8_t* q, float* d, float* y) {
  CHECK(x.size() % kBlock == 0);
  for (size_t b = 0; b < x.size() / kBlock; ++b) {
    quantize_block(x.data() + kBlock * b, q + kBlock * b, d[b], y[b]);
  }
}

}  // namespace sluice::quant
