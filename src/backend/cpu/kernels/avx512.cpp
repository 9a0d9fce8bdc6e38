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

// What multiplying a tile needs.
struct Wide {
  static constexpr int kRows = 16;
  static constexpr int kTokens = 8;
  using U = __m512i;
  using F = __m512;

  SLUICE_INLINE static U splat(uint32_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  SLUICE_INLINE static F splat(float x) { return _mm512_set1_ps(x); }
  SLUICE_INLINE static U splat_word(const int8_t* p) {
    int word;
    __builtin_memcpy(&word, p, sizeof(word));
    return _mm512_set1_epi32(word);
  }
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
  SLUICE_INLINE static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  SLUICE_INLINE static F multiply(F a, F b) { return _mm512_mul_ps(a, b); }
  SLUICE_INLINE static F add(F a, F b) { return _mm512_add_ps(a, b); }
  SLUICE_INLINE static F negate(F x) { return _mm512_xor_ps(x, splat(-0.0f)); }
  SLUICE_INLINE static F load(const float* p) { return _mm512_loadu_ps(p); }
  SLUICE_INLINE static U load(const uint32_t* p) { return _mm512_loadu_si512(p); }
  SLUICE_INLINE static void store(F x, float* p) { _mm512_storeu_ps(p, x); }
};

}  // namespace

const Kernels kAvx512Kernels = {"AVX-512 VNNI", multiply_rows_of<Narrow, Wide>};

}  // namespace sluice::backend::cpu
