// Lanes of 256 bits: 8 rows at a time. How four bytes are multiplied is said by `Dot`: maddubs on
// any CPU with AVX2, or vpdpbusd.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <immintrin.h>

#include "backend/cpu/kernels/lanes.h"

namespace sluice::backend::cpu {

template <typename Dot>
struct Lanes256 : Dot {
  static constexpr int kRows = 8;
  static constexpr int kTokens = 4;
  using U = __m256i;
  using F = __m256;

  // A field of eight rows, side by side: words, halves as floats, bytes without a sign.
  SLUICE_INLINE static U load_words(const std::byte* p, size_t /*gap*/) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  SLUICE_INLINE static F load_halves(const std::byte* p, size_t /*gap*/) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  SLUICE_INLINE static U load_bytes(const std::byte* p, size_t /*gap*/) {
    return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  }

  SLUICE_INLINE static U splat(uint32_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  SLUICE_INLINE static F splat(float x) { return _mm256_set1_ps(x); }
  SLUICE_INLINE static U splat_word(const int8_t* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof(word));
    return _mm256_set1_epi32(word);
  }

  SLUICE_INLINE static U bits(U x, uint32_t mask) { return _mm256_and_si256(x, splat(mask)); }
  SLUICE_INLINE static U either(U a, U b) { return _mm256_or_si256(a, b); }
  template <int n>  // to the right, or to the left if negative
  SLUICE_INLINE static U shift(U x) {
    if constexpr (n > 0) return _mm256_srli_epi32(x, n);
    if constexpr (n < 0) return _mm256_slli_epi32(x, -n);
    return x;
  }
  SLUICE_INLINE static U shift_right_signed_24(U x) { return _mm256_srai_epi32(x, 24); }
  SLUICE_INLINE static U multiply(U x, uint32_t factor) {
    return _mm256_mullo_epi32(x, splat(factor));
  }
  template <typename Table>
  SLUICE_INLINE static U look_up(const Table& table, U nibbles) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&table));
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(values), nibbles);
  }

  SLUICE_INLINE static F as_floats(U x) { return _mm256_castsi256_ps(x); }
  SLUICE_INLINE static U as_words(F x) { return _mm256_castps_si256(x); }
  SLUICE_INLINE static F to_float(U x) { return _mm256_cvtepi32_ps(x); }
  SLUICE_INLINE static F half_to_float(U x) {
#ifdef __AVX512VL__
    return _mm256_cvtph_ps(_mm256_cvtepi32_epi16(x));
#else
    const U low = bits(x, 0xffffu);
    const U packed = _mm256_packus_epi32(low, low);  // each 128 bits: its four, twice
    return _mm256_cvtph_ps(_mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0b1000)));
#endif
  }
  SLUICE_INLINE static F e8m0_to_float(U e) {  // as quant::e8m0_to_f32
    const U normal = _mm256_slli_epi32(_mm256_sub_epi32(e, splat(1u)), 23);
    const U subnormal = _mm256_sllv_epi32(splat(0x00200000u), e);
    const U small = _mm256_cmpgt_epi32(splat(2u), e);
    return _mm256_castsi256_ps(_mm256_blendv_epi8(normal, subnormal, small));
  }
  SLUICE_INLINE static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  SLUICE_INLINE static F multiply(F a, F b) { return _mm256_mul_ps(a, b); }
  SLUICE_INLINE static U add(U a, U b) { return _mm256_add_epi32(a, b); }
  SLUICE_INLINE static F add(F a, F b) { return _mm256_add_ps(a, b); }
  SLUICE_INLINE static F subtract(F a, F b) { return _mm256_sub_ps(a, b); }
  SLUICE_INLINE static F negate(F x) { return _mm256_xor_ps(x, splat(-0.0f)); }

  SLUICE_INLINE static F load(const float* p) { return _mm256_loadu_ps(p); }
  SLUICE_INLINE static U load(const uint32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  SLUICE_INLINE static void store(F x, float* p) { _mm256_storeu_ps(p, x); }
  SLUICE_INLINE static void store(U x, uint32_t* p) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x);
  }
};

}  // namespace sluice::backend::cpu
