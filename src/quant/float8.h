// Eight floats side by side: the eight chains of the contract's float dot, which are also the lanes
// of one AVX register. GCC 12 does not keep an array of eight in a register over a loop (4x slower,
// measured on dot_f32), so the few operations are spelled out; elsewhere they are plain loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/half.h"
#include "quant/type.h"

#if defined(__AVX2__) && defined(__FMA__) && defined(__F16C__)
#define SLUICE_FLOAT8_AVX 1
#endif

namespace sluice::quant {

// Element i of a row of a float type.
template <Type type>
float load_float(const std::byte* row, int64_t i) {
  static_assert(is_float(type));
  if constexpr (type == Type::f32) {
    float value;
    std::memcpy(&value, row + i * 4, 4);
    return value;
  } else {
    uint16_t bits;
    std::memcpy(&bits, row + i * 2, 2);
    return type == Type::f16 ? f16_to_f32(bits) : bf16_to_f32(bits);
  }
}

#ifdef SLUICE_FLOAT8_AVX

struct Float8 {
  __m256 lanes = _mm256_setzero_ps();
};

// Elements i .. i+7 of a row of a float type.
template <Type type>
Float8 load_8_floats(const std::byte* row, int64_t i) {
  if constexpr (type == Type::f32) {
    return {_mm256_loadu_ps(reinterpret_cast<const float*>(row + i * 4))};
  } else {
    const __m128i bits = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + i * 2));
    if constexpr (type == Type::f16) return {_mm256_cvtph_ps(bits)};
    return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16))};
  }
}

// a*b + c in every lane, rounded once.
inline Float8 fma(Float8 a, Float8 b, Float8 c) {
  return {_mm256_fmadd_ps(a.lanes, b.lanes, c.lanes)};
}

inline void store(Float8 a, float* out) { _mm256_storeu_ps(out, a.lanes); }

#else

struct Float8 {
  float lanes[8] = {};
};

template <Type type>
Float8 load_8_floats(const std::byte* row, int64_t i) {
  Float8 out;
  for (int l = 0; l < 8; ++l) out.lanes[l] = load_float<type>(row, i + l);
  return out;
}

inline Float8 fma(Float8 a, Float8 b, Float8 c) {
  for (int l = 0; l < 8; ++l) c.lanes[l] = std::fma(a.lanes[l], b.lanes[l], c.lanes[l]);
  return c;
}

inline void store(Float8 a, float* out) { std::memcpy(out, a.lanes, sizeof a.lanes); }

#endif

// Chains 0+4, 1+5, 2+6, 3+7; then 0+2, 1+3; then 0+1.
inline float sum_of_chains(const float (&chain)[8]) {
  const float four[4] = {chain[0] + chain[4], chain[1] + chain[5], chain[2] + chain[6],
                         chain[3] + chain[7]};
  return (four[0] + four[2]) + (four[1] + four[3]);
}

// sum a*b, n % 8 == 0, as chains like the contract's: deterministic, but no part of it.
inline float sum_of_products(const float* a, const float* b, int n) {
  Float8 chains;
  for (int i = 0; i < n; i += 8) {
    chains = fma(load_8_floats<Type::f32>(reinterpret_cast<const std::byte*>(a), i),
                 load_8_floats<Type::f32>(reinterpret_cast<const std::byte*>(b), i), chains);
  }
  float chain[8];
  store(chains, chain);
  return sum_of_chains(chain);
}

}  // namespace sluice::quant
