// Weights and scales of two blocks of a row, for the products of wide_block.h, in a kernel as in
// g++ (lanes.h). The float operations are those of wide_products.h, so the bits are too; what
// differs is that scales come from the packed weights straight into registers, two blocks at a
// time.
//
// A byte w becomes a float without a conversion: 0x4b000000 | w are the bits of 2^23 + w. Scales
// are then fma(2^23 + w, k, -2^23 k) = k w, exactly, where k is a power of two or 1.5 of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

#include "backend/cuda/wide_products.h"

namespace sluice::backend::cuda {

// 2^23 + byte k of w, as a float.
SLUICE_LANE_FN float biased_byte(uint32_t w, int k) {
  return as_float(pick_bytes(w, 0x4b000000u, 0x7440u | static_cast<uint32_t>(k)));
}
// factor * (byte - zero), from biased_byte().
SLUICE_LANE_FN float times_byte(float biased, float factor, float zero) {
  return fma_rn(biased, factor, -(8388608.0f + zero) * factor);
}

// Two blocks of a row. weights: as WeightBytes, of blocks 0 and 1. scale: of a block, or of its
// groups of 16; start: -scale * M of a block (of its first group).
struct TwoBlocks {
  WeightBytes weights;  // [0..3]
  float scale[4];
  float start[2];
};

// What a type says of a row of a chunk: scales that stay packed, then two blocks at a time (in
// order), the sum of a block, and the end of a chunk's sum.
template <Type type>
struct BlockRow {
  static constexpr bool kIs = false;
};

// Packed scales: a byte each, of blocks that are still to come. Of Q4_K all eight; of Q5_K, whose
// weights take more registers, those of four.
template <Type type>
struct AffineBlockRow {
  static constexpr bool kIs = true, kHasMin = true, kIsQ4 = type == Type::q4_k;
  std::conditional_t<kIsQ4, uint64_t, uint32_t> scales;

  SLUICE_LANE_FN void begin(const uint8_t* chunk, int row) {
    if constexpr (kIsQ4) scales = uint64_t{packed(chunk, 1, row)} << 32 | packed(chunk, 0, row);
  }
  SLUICE_LANE_FN static uint32_t packed(const uint8_t* chunk, int half, int row) {
    const uint32_t s0 = word(chunk, 1, row), s2 = word(chunk, 3, row);
    return half ? (s2 & 0x0f0f0f0fu) | (s0 >> 2 & 0x30303030u) : s0 & 0x3f3f3f3fu;
  }
  SLUICE_LANE_FN void next(const uint8_t* chunk, int, int pair, int lane, TwoBlocks& out) {
    const int row = lane / 4, i = lane % 4;
    if (!kIsQ4 && pair % 2 == 0) scales = packed(chunk, pair / 2, row);
    uint32_t* const a = out.weights.a;
    SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
      const uint32_t w = word(chunk, (kIsQ4 ? 4 : 12) + 8 * pair + 4 * k + i, row);
      if constexpr (kIsQ4) {
        a[2 * k] = w & 0x0f0f0f0fu;
        a[2 * k + 1] = w & 0xf0f0f0f0u;  // 16 times the weights
      } else {
        const uint32_t top = word(chunk, 4 + 4 * k + i, row) >> 2 * pair;
        a[2 * k] = (w & 0x0f0f0f0fu) | (top << 4 & 0x10101010u);
        a[2 * k + 1] = (w >> 4 & 0x0f0f0f0fu) | (top << 3 & 0x10101010u);
      }
    }
    SLUICE_UNROLL for (int b = 0; b < 2; ++b) {
      const float byte = biased_byte(static_cast<uint32_t>(scales), b);
      const float unit = kIsQ4 && b == 1 ? 0.0625f : 1.0f;
      out.scale[b] = times_byte(byte, unit, 0.0f);
      out.start[b] = times_byte(byte, -kProductStart * unit, 0.0f);
    }
    scales >>= 16;
  }
  SLUICE_LANE_FN static float add(float P, const TwoBlocks& of, int b, int32_t sum, int32_t,
                                  float d) {
    return fma_rn(d, fma_rn(of.scale[b], as_float(static_cast<uint32_t>(sum)), of.start[b]), P);
  }

  // Of all eight blocks.
  SLUICE_LANE_FN static void minima(const uint8_t* chunk, int row, float (&out)[8]) {
    const uint32_t s1 = word(chunk, 2, row), s2 = word(chunk, 3, row);
    const uint32_t low = s1 & 0x3f3f3f3fu;
    const uint32_t high = (s2 >> 4 & 0x0f0f0f0fu) | (s1 >> 2 & 0x30303030u);
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      out[b] = times_byte(biased_byte(b < 4 ? low : high, b % 4), 1.0f, 0.0f);
    }
  }
  struct Ends {
    float d, dmin;
  };
  SLUICE_LANE_FN static Ends ends(const uint8_t* chunk, int row) {
    const uint32_t head = word(chunk, 0, row);
    return {half_bits(head & 0xffffu), half_bits(head >> 16)};
  }
  SLUICE_LANE_FN static float end(const Ends& of, float P, float N) {
    return fma_rn(of.d, P, -mul_rn(of.dmin, N));
  }
};
template <>
struct BlockRow<Type::q4_k> : AffineBlockRow<Type::q4_k> {};
template <>
struct BlockRow<Type::q5_k> : AffineBlockRow<Type::q5_k> {};

// Weights are four times as large, and scales a fourth.
template <>
struct BlockRow<Type::q6_k> {
  static constexpr bool kIs = true, kHasMin = false;
  SLUICE_LANE_FN void begin(const uint8_t*, int) {}

  SLUICE_LANE_FN void next(const uint8_t* chunk, int, int pair, int lane, TwoBlocks& out) {
    const uint8_t* const words = Stripe<Type::q6_k>::words(chunk);
    const int row = lane / 4, i = lane % 4, odd = 4 * (pair % 2);
    SLUICE_UNROLL for (int group = 0; group < 2; ++group) {
      const int at = 12 * (pair / 2 * 2 + group) + i;
      const uint32_t x = word(words, at, row) >> odd, y = word(words, at + 4, row) >> odd,
                     z = word(words, at + 8, row) >> odd;
      uint32_t* const a = out.weights.a + group;
      a[0] = (x << 2 & 0x3c3c3c3cu) | ((z << 6 & 0xc0c0c0c0u) ^ 0x80808080u);
      a[2] = (y << 2 & 0x3c3c3c3cu) | ((z << 4 & 0xc0c0c0c0u) ^ 0x80808080u);
    }
    const uint32_t four = word(words, 48 + pair, row) ^ 0x80808080u;
    SLUICE_UNROLL for (int g = 0; g < 4; ++g) {
      const float byte = biased_byte(four, g);
      out.scale[g] = times_byte(byte, 0.25f, 128.0f);
      if (g % 2 == 0) out.start[g / 2] = times_byte(byte, -0.25f * kProductStart, 128.0f);
    }
  }
  SLUICE_LANE_FN static float add(float P, const TwoBlocks& of, int b, int32_t first,
                                  int32_t second, float d) {
    const float one = fma_rn(of.scale[2 * b], as_float(static_cast<uint32_t>(first)), of.start[b]);
    return fma_rn(d, fma_rn(of.scale[2 * b + 1], product_value(second), one), P);
  }
  using Ends = float;
  SLUICE_LANE_FN static Ends ends(const uint8_t* chunk, int row) {
    return half_bits(load_16(chunk + 2 * row));
  }
  SLUICE_LANE_FN static float end(const Ends& d, float P, float) { return mul_rn(d, P); }
};

// Chunks have an even number of blocks.
template <>
struct BlockRow<Type::q8_0> {
  static constexpr bool kIs = true, kHasMin = false;
  SLUICE_LANE_FN void begin(const uint8_t*, int) {}

  SLUICE_LANE_FN void next(const uint8_t* chunk, int n_blocks, int pair, int lane, TwoBlocks& out) {
    const int row = lane / 4, i = lane % 4;
    SLUICE_UNROLL for (int b = 0; b < 2; ++b) {
      const int block = 2 * pair + b;
      const uint8_t* const words = Stripe<Type::q8_0>::words(chunk, n_blocks, block);
      out.weights.a[b] = word(words, i, row);
      out.weights.a[2 + b] = word(words, 4 + i, row);
      out.scale[b] = half_bits(load_16(chunk + 2 * (8 * block + row)));
    }
  }
  SLUICE_LANE_FN static float add(float P, const TwoBlocks& of, int b, int32_t sum, int32_t,
                                  float d) {
    return fma_rn(mul_rn(d, of.scale[b]), product_value(sum), P);
  }
  struct Ends {};
  SLUICE_LANE_FN static Ends ends(const uint8_t*, int) { return {}; }
  SLUICE_LANE_FN static float end(const Ends&, float P, float) { return P; }
};

}  // namespace sluice::backend::cuda
