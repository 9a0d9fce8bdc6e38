// The kernels for AVX2, the least that sluice runs on: 8 rows at a time.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kernels/families.h"
#include "backend/cpu/kernels/lanes_256.h"
#include "backend/cpu/kernels/multiply.h"

namespace sluice::backend::cpu {
namespace {

struct Maddubs {
  static constexpr float kSignedOffset = 0.0f;
  SLUICE_INLINE static __m256i from_signed(__m256i w) { return w; }

  // Pairs are added in 16 bits: 2 * 63 * 127 and 2 * 128 * 127 are below 2^15.
  SLUICE_INLINE static __m256i dot4(__m256i acc, __m256i w, __m256i q) {
    const __m256i pairs = _mm256_maddubs_epi16(w, q);
    return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  SLUICE_INLINE static __m256i dot4_signed(__m256i acc, __m256i w, __m256i q) {
    return dot4(acc, _mm256_abs_epi8(w), _mm256_sign_epi8(q, w));
  }
};

using Lanes = Lanes256<Maddubs>;

}  // namespace

const Kernels kAvx2Kernels = {"AVX2", multiply_rows_of<Lanes, Lanes>};

}  // namespace sluice::backend::cpu
