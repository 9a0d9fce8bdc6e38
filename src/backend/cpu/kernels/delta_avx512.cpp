// See delta_rule.h: the sixteen lanes of a register, four columns at a time.
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "backend/cpu/delta_rule_lanes.h"

namespace sluice::backend::cpu {
namespace {

struct Sixteen {
  using Vector = __m512;
  static constexpr int kRegisters = 1;
  static constexpr int kColumns = 4;

  SLUICE_INLINE static Vector load(const float* x) { return _mm512_loadu_ps(x); }
  SLUICE_INLINE static Vector load_half(const float* x) { return _mm512_maskz_loadu_ps(0xff, x); }
  SLUICE_INLINE static void store(Vector v, float* out) { _mm512_storeu_ps(out, v); }
  SLUICE_INLINE static void store_half(Vector v, float* out) {
    _mm512_mask_storeu_ps(out, 0xff, v);
  }
  SLUICE_INLINE static Vector all(float x) { return _mm512_set1_ps(x); }
  SLUICE_INLINE static Vector product(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  SLUICE_INLINE static Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  using Sums = Vector[kRegisters];
  SLUICE_INLINE static __m256 eight(const Sums& sums) {
    const Vector v = sums[0];
    return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  }
  SLUICE_INLINE static __m256 fours(__m256 x, __m256 y) {
    return _mm256_add_ps(_mm256_permute2f128_ps(x, y, 0x20), _mm256_permute2f128_ps(x, y, 0x31));
  }
  SLUICE_INLINE static void store_sums(const Sums& a, const Sums& b, const Sums& c, const Sums& d,
                                       float* out) {
    const __m256 ac = fours(eight(a), eight(c)), bd = fours(eight(b), eight(d));
    const __m256 two =
        _mm256_add_ps(_mm256_shuffle_ps(ac, bd, 0x44), _mm256_shuffle_ps(ac, bd, 0xee));
    const __m128 low = _mm256_castps256_ps128(two), high = _mm256_extractf128_ps(two, 1);
    _mm_storeu_ps(out,
                  _mm_add_ps(_mm_shuffle_ps(low, high, 0x88), _mm_shuffle_ps(low, high, 0xdd)));
  }
};

}  // namespace

void wide_delta_rule(const DeltaToken* tokens, int64_t n_tokens, const DeltaColumns& s) {
  DeltaRule<Sixteen>::run(tokens, n_tokens, s);
}

}  // namespace sluice::backend::cpu
