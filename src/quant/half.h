// f16 and bf16, to and from f32: widening is exact, narrowing rounds to nearest, ties to even.
// The portable functions say what is computed; where the CPU has F16C its instructions do the same
// work and give the same bits (a signalling NaN comes out quiet in both).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace sluice::quant {

constexpr float kMaxF16 = 65504.0f;
constexpr float kMinF16 = 0x1p-24f;  // the least subnormal
constexpr float kMaxBf16 = 0x1.fep127f;

// The exponent's bias is 15 in f16 and 127 in f32.
constexpr uint32_t kF16ExponentShift = (127u - 15u) << 23;
constexpr uint32_t kQuietBitF32 = 0x00400000u;

constexpr float f16_to_f32_portable(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16;
  const uint32_t exponent = half & 0x7c00u;
  const uint32_t mantissa = half & 0x03ffu;
  uint32_t magnitude = (exponent | mantissa) << 13;
  if (exponent == 0) {
    // Subnormal: mantissa * 2^-24, which is a normal f32.
    magnitude = std::bit_cast<uint32_t>(static_cast<float>(mantissa) * kMinF16);
  } else if (exponent == 0x7c00u) {
    magnitude |= 0x7f800000u | (mantissa != 0 ? kQuietBitF32 : 0u);
  } else {
    magnitude += kF16ExponentShift;
  }
  return std::bit_cast<float>(sign | magnitude);
}

constexpr uint16_t f32_to_f16_portable(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | ((magnitude >> 13) & 0x03ffu);
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;  // from 65520 on, half an ulp above the largest f16
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14. One ulp of 0.5 is 2^-24, the step of subnormal f16, so this sum rounds for us.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    half = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(0.5f);
  } else {
    const uint32_t even = (magnitude >> 13) & 1u;
    half = (magnitude - kF16ExponentShift + 0x0fffu + even) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

inline float f16_to_f32(uint16_t half) {
#ifdef __F16C__
  return _cvtsh_ss(half);
#else
  return f16_to_f32_portable(half);
#endif
}

inline uint16_t f32_to_f16(float value) {
#ifdef __F16C__
  const __m128i half = _mm_cvtps_ph(_mm_set_ss(value), _MM_FROUND_TO_NEAREST_INT);
  return static_cast<uint16_t>(_mm_cvtsi128_si32(half));
#else
  return f32_to_f16_portable(value);
#endif
}

constexpr float bf16_to_f32(uint16_t half) {
  return std::bit_cast<float>(static_cast<uint32_t>(half) << 16);
}

constexpr uint16_t f32_to_bf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  // A NaN whose payload stands in the lower half only would round to infinity: make it quiet.
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  const uint32_t even = (bits >> 16) & 1u;
  return static_cast<uint16_t>((bits + 0x7fffu + even) >> 16);
}

}  // namespace sluice::quant
