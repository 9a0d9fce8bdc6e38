// See kv_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/kv_rows.h"

#include <cstring>

#include "base/check.h"
#include "quant/blocks.h"
#include "quant/decode.h"
#include "quant/encode.h"
#include "quant/float8.h"

namespace sluice::backend::cpu {
namespace {

using quant::kBlock;

template <typename Block>
void store_blocks(quant::Type type, std::span<const float> values, std::byte* row,
                  std::byte* scales) {
  for (size_t i = 0; i < values.size(); i += kBlock) {
    Block block;
    quant::encode_row(type, values.subspan(i, kBlock), reinterpret_cast<std::byte*>(&block));
    std::memcpy(row, block.qs, sizeof block.qs);
    std::memcpy(scales, &block.d, sizeof block.d);
    row += sizeof block.qs;
    scales += sizeof block.d;
  }
}

float scale_at(const std::byte* scales) {
  uint16_t bits;
  std::memcpy(&bits, scales, sizeof bits);
  return quant::f16_to_f32(bits);
}

// GCC 12 makes of plain loops over a copied block ones that wait for their own stores (q8_0), or
// one value at a time (q4_0).
#ifdef SLUICE_FLOAT8_AVX

// x[i] = d * q[i] for the lower eight.
void scale_8(__m128i q, float d, float* x) {
  const __m256 values = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
  _mm256_storeu_ps(x, _mm256_mul_ps(values, _mm256_set1_ps(d)));
}

void scale_16(__m128i q, float d, float* x) {
  scale_8(q, d, x);
  scale_8(_mm_unpackhi_epi64(q, q), d, x + 8);
}

__m128i load_16(const std::byte* q) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(q)); }

#endif

// x = d * q
void load_block_q8_0(const std::byte* q, float d, float* x) {
#ifdef SLUICE_FLOAT8_AVX
  scale_16(load_16(q), d, x);
  scale_16(load_16(q + 16), d, x + 16);
#else
  for (int i = 0; i < kBlock; ++i) x[i] = d * static_cast<float>(static_cast<int8_t>(q[i]));
#endif
}

// x = d * (q - 8)
void load_block_q4_0(const std::byte* q, float d, float* x) {
  constexpr int kHalf = kBlock / 2;
#ifdef SLUICE_FLOAT8_AVX
  const __m128i low = _mm_set1_epi8(15), offset = _mm_set1_epi8(8);
  const __m128i both = load_16(q);
  scale_16(_mm_sub_epi8(_mm_and_si128(both, low), offset), d, x);
  scale_16(_mm_sub_epi8(_mm_and_si128(_mm_srli_epi16(both, 4), low), offset), d, x + kHalf);
#else
  for (int i = 0; i < kHalf; ++i) {
    const int both = std::to_integer<int>(q[i]);
    x[i] = d * static_cast<float>((both & 15) - 8);
    x[i + kHalf] = d * static_cast<float>((both >> 4) - 8);
  }
#endif
}

}  // namespace

void store_kv_row(quant::Type type, std::span<const float> values, std::byte* row,
                  std::byte* scales) {
  switch (type) {
    case quant::Type::q8_0:
      return store_blocks<quant::BlockQ8_0>(type, values, row, scales);
    case quant::Type::q4_0:
      return store_blocks<quant::BlockQ4_0>(type, values, row, scales);
    default:
      DCHECK(quant::is_float(type));
      return quant::encode_row(type, values, row);
  }
}

void load_kv_row(quant::Type type, const std::byte* row, const std::byte* scales,
                 std::span<float> values) {
  float* const end = values.data() + values.size();
  switch (type) {
    case quant::Type::q8_0:
      for (float* x = values.data(); x < end; x += kBlock, row += 32, scales += 2) {
        load_block_q8_0(row, scale_at(scales), x);
      }
      return;
    case quant::Type::q4_0:
      for (float* x = values.data(); x < end; x += kBlock, row += 16, scales += 2) {
        load_block_q4_0(row, scale_at(scales), x);
      }
      return;
    default:
      DCHECK(quant::is_float(type));
      return quant::decode_row(type, row, values);
  }
}

}  // namespace sluice::backend::cpu
