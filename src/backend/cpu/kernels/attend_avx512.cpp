// See attend_wide.h. A register holds the eight chains of two keys, or sixteen columns of a value.
// Eight queries by two registers are sixteen sums at once: what is converted from f16 serves eight
// queries, where the 16 registers of AVX2 let it serve three.
// SPDX-License-Identifier: Apache-2.0
#include <immintrin.h>

#include "backend/cpu/attend_wide.h"
#include "backend/cpu/kernels/lanes.h"

namespace sluice::backend::cpu {
namespace {

using quant::Type;

template <Type type>
constexpr int64_t kItemBytes = type == Type::f32 ? 4 : 2;

SLUICE_INLINE inline __m512 widened(__m256i halves, bool is_f16) {
  if (is_f16) return _mm512_cvtph_ps(halves);
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(halves), 16));
}

// Sixteen values.
template <Type type>
SLUICE_INLINE inline __m512 load_16(const std::byte* p) {
  if constexpr (type == Type::f32) return _mm512_loadu_ps(p);
  return widened(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)), type == Type::f16);
}

// Eight values of one row and eight of another.
template <Type type>
SLUICE_INLINE inline __m512 load_8_and_8(const std::byte* low, const std::byte* high) {
  if constexpr (type == Type::f32) {
    const __m256 first = _mm256_loadu_ps(reinterpret_cast<const float*>(low));
    return _mm512_insertf32x8(_mm512_castps256_ps512(first),
                              _mm256_loadu_ps(reinterpret_cast<const float*>(high)), 1);
  } else {
    const auto load = [](const std::byte* p) SLUICE_INLINE {
      return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
    };
    const __m256i both = _mm256_inserti128_si256(_mm256_castsi128_si256(load(low)), load(high), 1);
    return widened(both, type == Type::f16);
  }
}

// The sums of the chains of keys 0 and 1, and of 2 and 3, as quant::sum_of_chains.
SLUICE_INLINE inline __m128 sums_of_chains(__m512 ab, __m512 cd) {
  // chains i + (i+4), of a, b, c, d
  const __m512 fours = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0b10'00'10'00),
                                     _mm512_shuffle_f32x4(ab, cd, 0b11'01'11'01));
  // 0+2 and 1+3 of a and c, of b and d; then these
  const __m256 low = _mm512_castps512_ps256(fours), high = _mm512_extractf32x8_ps(fours, 1);
  const __m256 even = _mm256_shuffle_ps(low, high, 0b01'00'01'00);  // a c | b d
  const __m256 odd = _mm256_shuffle_ps(low, high, 0b11'10'11'10);
  const __m256 twos = _mm256_add_ps(even, odd);
  const __m128 ac = _mm256_castps256_ps128(twos), bd = _mm256_extractf128_ps(twos, 1);
  const __m128 sums = _mm_add_ps(_mm_shuffle_ps(ac, bd, 0b10'00'10'00),
                                 _mm_shuffle_ps(ac, bd, 0b11'01'11'01));  // a c b d
  return _mm_shuffle_ps(sums, sums, 0b11'01'10'00);
}

template <Type type>
void dots(const float* queries, int query_stride, const WideRows& keys, int head_dim, float* scores,
          int score_stride) {
  __m512 ab[kWideQueries], cd[kWideQueries];
  unroll<kWideQueries>([&](auto q) SLUICE_INLINE { ab[q] = cd[q] = _mm512_setzero_ps(); });
  for (int i = 0; i < head_dim; i += 8) {
    const std::byte* const key = keys.data + i * kItemBytes<type>;
    const __m512 first = load_8_and_8<type>(key, key + keys.row_bytes);
    const __m512 second = load_8_and_8<type>(key + 2 * keys.row_bytes, key + 3 * keys.row_bytes);
    unroll<kWideQueries>([&](auto q) SLUICE_INLINE {
      const __m512 query = _mm512_broadcast_f32x8(_mm256_loadu_ps(queries + q * query_stride + i));
      ab[q] = _mm512_fmadd_ps(query, first, ab[q]);
      cd[q] = _mm512_fmadd_ps(query, second, cd[q]);
    });
  }
  unroll<kWideQueries>([&](auto q) SLUICE_INLINE {
    _mm_storeu_ps(scores + q * score_stride, sums_of_chains(ab[q], cd[q]));
  });
}

template <Type type>
void weigh(const WideWeights& by, const WideRows& values, float* o, int o_stride) {
  __m512 low[kWideQueries], high[kWideQueries];
  unroll<kWideQueries>([&](auto q) SLUICE_INLINE {
    const __m512 factor = _mm512_set1_ps(by.factors[q]);
    low[q] = _mm512_mul_ps(_mm512_loadu_ps(o + q * o_stride), factor);
    high[q] = _mm512_mul_ps(_mm512_loadu_ps(o + q * o_stride + 16), factor);
  });
  for (int t = 0; t < by.n_values; ++t) {
    const std::byte* const value = values.data + t * values.row_bytes;
    const __m512 first = load_16<type>(value);
    const __m512 second = load_16<type>(value + 16 * kItemBytes<type>);
    unroll<kWideQueries>([&](auto q) SLUICE_INLINE {
      const __m512 weight = _mm512_set1_ps(by.weights[q * by.stride + t]);
      low[q] = _mm512_fmadd_ps(weight, first, low[q]);
      high[q] = _mm512_fmadd_ps(weight, second, high[q]);
    });
  }
  unroll<kWideQueries>([&](auto q) SLUICE_INLINE {
    _mm512_storeu_ps(o + q * o_stride, low[q]);
    _mm512_storeu_ps(o + q * o_stride + 16, high[q]);
  });
}

}  // namespace

void wide_dots(const float* queries, int query_stride, const WideRows& keys, int head_dim,
               float* scores, int score_stride) {
  const auto call = keys.type == Type::f16    ? dots<Type::f16>
                    : keys.type == Type::bf16 ? dots<Type::bf16>
                                              : dots<Type::f32>;
  call(queries, query_stride, keys, head_dim, scores, score_stride);
}

void wide_weigh(const WideWeights& by, const WideRows& values, float* o, int o_stride) {
  const auto call = values.type == Type::f16    ? weigh<Type::f16>
                    : values.type == Type::bf16 ? weigh<Type::bf16>
                                                : weigh<Type::f32>;
  call(by, values, o, o_stride);
}

}  // namespace sluice::backend::cpu
