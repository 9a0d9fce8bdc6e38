// What attention needs of eight floats side by side beyond quant/float8.h: plain loops, and beside
// them the AVX instructions that give the same bits.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "quant/float8.h"

namespace sluice::backend::cpu {

using quant::Float8;

inline Float8 load(const float* x) {
  return quant::load_8_floats<quant::Type::f32>(reinterpret_cast<const std::byte*>(x), 0);
}

#ifdef SLUICE_FLOAT8_AVX

inline Float8 in_all_lanes(float x) { return {_mm256_set1_ps(x)}; }
inline Float8 sum(Float8 a, Float8 b) { return {_mm256_add_ps(a.lanes, b.lanes)}; }
inline Float8 product(Float8 a, Float8 b) { return {_mm256_mul_ps(a.lanes, b.lanes)}; }

// a > b ? a : b in every lane: where a is NaN, b.
inline Float8 larger(Float8 a, Float8 b) { return {_mm256_max_ps(a.lanes, b.lanes)}; }

// out = quant::sum_of_chains of a, b, c and d, added side by side.
inline void store_sums(Float8 a, Float8 b, Float8 c, Float8 d, float* out) {
  const auto fours = [](Float8 x, Float8 y) {  // chains i + (i+4): of x below, of y above
    return _mm256_add_ps(_mm256_permute2f128_ps(x.lanes, y.lanes, 0x20),
                         _mm256_permute2f128_ps(x.lanes, y.lanes, 0x31));
  };
  const __m256 ac = fours(a, c);
  const __m256 bd = fours(b, d);
  // 0+2 and 1+3 of a, of b, of c, of d
  const __m256 two =
      _mm256_add_ps(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xee));
  const __m128 low = _mm256_castps256_ps128(two);
  const __m128 high = _mm256_extractf128_ps(two, 1);
  _mm_storeu_ps(out, _mm_add_ps(_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xdd)));
}

#else

inline Float8 in_all_lanes(float x) {
  Float8 out;
  for (float& lane : out.lanes) lane = x;
  return out;
}

inline Float8 sum(Float8 a, Float8 b) {
  for (int l = 0; l < 8; ++l) a.lanes[l] += b.lanes[l];
  return a;
}

inline Float8 product(Float8 a, Float8 b) {
  for (int l = 0; l < 8; ++l) a.lanes[l] *= b.lanes[l];
  return a;
}

inline Float8 larger(Float8 a, Float8 b) {
  for (int l = 0; l < 8; ++l) a.lanes[l] = a.lanes[l] > b.lanes[l] ? a.lanes[l] : b.lanes[l];
  return a;
}

inline void store_sums(Float8 a, Float8 b, Float8 c, Float8 d, float* out) {
  for (const Float8& chains : {a, b, c, d}) *out++ = quant::sum_of_chains(chains.lanes);
}

#endif

}  // namespace sluice::backend::cpu
