// The kernels for AVX2 with VNNI, as on Intel's client CPUs since 2021: 8 rows at a time. Compiled
// with these instructions switched on: nothing here may run before kernels.cpp has asked the CPU.
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
    return _mm256_dpbusd_avx_epi32(acc, w, q);
  }
  SLUICE_INLINE static __m256i dot4_signed(__m256i acc, __m256i w, __m256i q) {
    return dot4(acc, w, q);
  }
};

using Lanes = Lanes256<Vnni>;

}  // namespace

const Kernels kAvxVnniKernels = {"AVX-VNNI", multiply_rows_of<Lanes, Lanes>};

}  // namespace sluice::backend::cpu
