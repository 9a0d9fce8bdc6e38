// Rounding to the nearest integer, ties to even, in a form that every compiler turns into one add
// and one subtract per lane. Not for values of 2^22 or more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

namespace sluice::quant {

// In [2^23, 2^24) one ulp is 1: adding this constant leaves the rounded integer in the low bits.
constexpr float kRoundingMagic = 0x1.8p23f;

// |v| < 2^22. For anything else, NaN included, the result is meaningless but defined.
constexpr int32_t round_half_even(float v) {
  return static_cast<int32_t>(std::bit_cast<uint32_t>(v + kRoundingMagic) -
                              std::bit_cast<uint32_t>(kRoundingMagic));
}

// The same as a float. |v| < 2^22.
constexpr float rounded_half_even(float v) { return (v + kRoundingMagic) - kRoundingMagic; }

}  // namespace sluice::quant
