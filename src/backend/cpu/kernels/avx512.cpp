// The kernels for AVX-512 with VNNI: 8 rows at a time for one input row, 16 for more. Compiled with
// these instructions switched on: nothing here may run before kernels.cpp has asked the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernels/families.h"
#include "backend/cpu/kernels/lanes_256.h"
#include "backend/cpu/kernels/multiply.h"

namespace sluice::backend::cpu {
namespace {

struct Vnni {
  static constexpr float kSignedOffset = 128.0f;  // vpdpbusd wants weights without a sign
  SLUICE_INLINE static __m256i from_signed(__m256i w) {
    return _mm256_xor_si256(w, _mm256_set1_epi32(static_cast<int>(0x80808080u)));
  }
  SLUICE_INLINE static __m256i dot4(__m256i acc, __m256i w, __m256i q) {
    return _mm256_dpbusd_epi32(acc, w, q);
  }
  SLUICE_INLINE static __m256i dot4_signed(__m256i acc, __m256i w, __m256i q) {
    return dot4(acc, w, q);
  }
};

using Narrow = Lanes256<Vnni>;

// 16 rows, of two stripes.
struct Wide {
  static constexpr int kRows = 16;
  static constexpr int kTokens = 8;
  static constexpr float kSignedOffset = 128.0f;  // vpdpbusd wants weights without a sign
  using U = __m512i;
  using F = __m512;

  // A field of sixteen rows, eight at p and eight at p + gap: words, halves as floats, bytes
  // without a sign.
  SLUICE_INLINE static U load_words(const std::byte* p, size_t gap) {
    const __m256i low = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    const __m256i high = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + gap));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
  }
  SLUICE_INLINE static F load_halves(const std::byte* p, size_t gap) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p + gap));
    return _mm512_cvtph_ps(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1));
  }
  SLUICE_INLINE static U load_bytes(const std::byte* p, size_t gap) {
    const __m128i low = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p));
    const __m128i high = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(p + gap));
    return _mm512_cvtepu8_epi32(_mm_unpacklo_epi64(low, high));
  }

  SLUICE_INLINE static U splat(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  SLUICE_INLINE static F splat(float x) { return _mm512_set1_ps(x); }
  SLUICE_INLINE static U splat_word(const int8_t* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof(word));
    return _mm512_set1_epi32(word);
  }

  SLUICE_INLINE static U bits(U x, uint32_t mask) { return _mm512_and_si512(x, splat(mask)); }
  SLUICE_INLINE static U either(U a, U b) { return _mm512_or_si512(a, b); }
  template <int n>  // to the right, or to the left if negative
  SLUICE_INLINE static U shift(U x) {
    if constexpr (n > 0) return _mm512_srli_epi32(x, n);
    if constexpr (n < 0) return _mm512_slli_epi32(x, -n);
    return x;
  }
  SLUICE_INLINE static U shift_right_signed_24(U x) { return _mm512_srai_epi32(x, 24); }
  SLUICE_INLINE static U multiply(U x, uint32_t factor) {
    return _mm512_mullo_epi32(x, splat(factor));
  }
  template <typename Table>
  SLUICE_INLINE static U look_up(const Table& table, U nibbles) {
    const __m128i values = _mm_loadu_si128(reinterpret_cast<const __m128i*>(&table));
    return _mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), nibbles);
  }
  SLUICE_INLINE static U from_signed(U w) { return _mm512_xor_si512(w, splat(0x80808080u)); }

  SLUICE_INLINE static U dot4(U acc, U w, U q) { return _mm512_dpbusd_epi32(acc, w, q); }
  SLUICE_INLINE static U dot4_signed(U acc, U w, U q) { return _mm512_dpbusd_epi32(acc, w, q); }
  // With four bytes of memory in all lanes, as one instruction: GCC 12 makes two of it, which took
  // a quarter longer on Sapphire Rapids.
  SLUICE_INLINE static U dot4_at(U acc, U w, const int8_t* q) {
    struct [[gnu::may_alias]] Word {
      int8_t bytes[4];
    };
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(acc)
        : "v"(w), "m"(*reinterpret_cast<const Word*>(q)));
    return acc;
  }

  SLUICE_INLINE static F as_floats(U x) { return _mm512_castsi512_ps(x); }
  SLUICE_INLINE static U as_words(F x) { return _mm512_castps_si512(x); }
  SLUICE_INLINE static F to_float(U x) { return _mm512_cvtepi32_ps(x); }
  SLUICE_INLINE static F half_to_float(U x) { return _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x)); }
  SLUICE_INLINE static F e8m0_to_float(U e) {  // as quant::e8m0_to_f32
    const U normal = _mm512_slli_epi32(_mm512_sub_epi32(e, splat(1u)), 23);
    const U subnormal = _mm512_sllv_epi32(splat(0x00200000u), e);
    const __mmask16 is_small = _mm512_cmplt_epu32_mask(e, splat(2u));
    return as_floats(_mm512_mask_blend_epi32(is_small, normal, subnormal));
  }
  SLUICE_INLINE static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  SLUICE_INLINE static F multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  SLUICE_INLINE static F add(F a, F b) { return _mm512_add_ps(a, b); }
  SLUICE_INLINE static F subtract(F a, F b) { return _mm512_sub_ps(a, b); }
  SLUICE_INLINE static F negate(F x) { return _mm512_xor_ps(x, splat(-0.0f)); }

  SLUICE_INLINE static F load(const float* p) { return _mm512_loadu_ps(p); }
  SLUICE_INLINE static U load(const uint32_t* p) { return _mm512_loadu_si512(p); }
  SLUICE_INLINE static void store(F x, float* p) { _mm512_storeu_ps(p, x); }
  SLUICE_INLINE static void store(U x, uint32_t* p) { _mm512_storeu_si512(p, x); }
};

}  // namespace

const Kernels kAvx512Kernels = {"AVX-512 VNNI", multiply_rows_of<Narrow, Wide>};

}  // namespace sluice::backend::cpu
