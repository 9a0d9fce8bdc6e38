// decode_row against the spec's formulas, element by element.
// SPDX-License-Identifier: Apache-2.0
#include "quant/decode.h"

#include <gtest/gtest.h>

#include <cstring>

#include "quant/half.h"
#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

// The exact value is computed in double: for types without minima it has at most 26 bits there, and
// decode_row rounds it once, so they agree exactly. With minima a double may round before the cast
// does, so the neighbour is allowed as well.
TEST(Decode, EveryElementOfEveryQuantisedTypeFollowsTheSpecsFormula) {
  const int64_t n = 256 * 64;
  for (const Type type : quantised_types()) {
    const std::vector<std::byte> row = random_bytes_row(type, n, 11);
    std::vector<float> got(n);
    decode_row(type, row.data(), got);
    for (int64_t k = 0; k < n; ++k) {
      const SpecElement e = spec_element(type, row.data(), k);
      const auto expected = static_cast<float>(e.value(spec_adds_min(type)));
      const float bound =
          e.dmin != 0 ? std::nextafter(std::abs(expected), INFINITY) - std::abs(expected) : 0;
      ASSERT_LE(std::abs(got[static_cast<size_t>(k)] - expected), bound)
          << type_name(type) << " element " << k << " expected " << expected << " got "
          << got[static_cast<size_t>(k)];
    }
  }
}

TEST(Decode, RandomBytesReachTheEndsOfEveryIntegerRange) {
  // The test above is worth only as much as its input: weights and scales must span their ranges.
  struct Range {
    Type type;
    int w_min, w_max, s_min, s_max, m_max;
  };
  for (const Range& r :
       {Range{Type::q4_0, -8, 7, 1, 1, 0}, Range{Type::q4_1, 0, 15, 1, 1, 0},
        Range{Type::q5_0, -16, 15, 1, 1, 0}, Range{Type::q5_1, 0, 31, 1, 1, 0},
        Range{Type::q8_0, -128, 127, 1, 1, 0}, Range{Type::iq4_nl, -127, 113, 1, 1, 0},
        Range{Type::mxfp4, -12, 12, 1, 1, 0}, Range{Type::q2_k, 0, 3, 0, 15, 15},
        Range{Type::q3_k, -4, 3, -32, 31, 0}, Range{Type::q4_k, 0, 15, 0, 63, 63},
        Range{Type::q5_k, 0, 31, 0, 63, 63}, Range{Type::q6_k, -32, 31, -128, 127, 0},
        Range{Type::iq4_xs, -127, 113, -32, 31, 0}}) {
    const std::vector<std::byte> row = random_bytes_row(r.type, 256 * 256, 12);
    Range seen{r.type, 999, -999, 999, -999, -999};
    for (int64_t k = 0; k < 256 * 256; ++k) {
      const SpecElement e = spec_element(r.type, row.data(), k);
      seen.w_min = std::min(seen.w_min, e.w), seen.w_max = std::max(seen.w_max, e.w);
      seen.s_min = std::min(seen.s_min, e.s), seen.s_max = std::max(seen.s_max, e.s);
      seen.m_max = std::max(seen.m_max, e.m);
    }
    EXPECT_EQ(seen.w_min, r.w_min) << type_name(r.type);
    EXPECT_EQ(seen.w_max, r.w_max) << type_name(r.type);
    EXPECT_EQ(seen.s_min, r.s_min) << type_name(r.type);
    EXPECT_EQ(seen.s_max, r.s_max) << type_name(r.type);
    EXPECT_EQ(seen.m_max, r.m_max) << type_name(r.type);
  }
}

TEST(Decode, RowsOf32BlocksMayEndInAShortChunk) {
  for (const Type type : quantised_types()) {
    if (type_info(type).block_elems != 32) continue;
    const std::vector<std::byte> row = random_bytes_row(type, 512, 13);
    std::vector<float> whole(512);
    decode_row(type, row.data(), whole);
    for (const size_t n : {size_t{0}, size_t{32}, size_t{96}, size_t{256}, size_t{288}}) {
      std::vector<float> part(n + 1, -77.0f);
      decode_row(type, row.data(), std::span(part).first(n));
      EXPECT_EQ(std::memcmp(part.data(), whole.data(), n * 4), 0) << type_name(type) << " n " << n;
      EXPECT_EQ(part[n], -77.0f) << type_name(type) << " n " << n << ": wrote past the end";
    }
  }
}

TEST(Decode, Mxfp4ExponentsGiveExactPowersOfTwoDownToSubnormals) {
  for (int e = 0; e < 255; ++e) {
    std::byte block[17] = {};
    block[0] = static_cast<std::byte>(e);
    block[1] = static_cast<std::byte>(0x91);  // element 0: 1, element 16: -1
    float got[32];
    decode_row(Type::mxfp4, block, got);
    EXPECT_EQ(got[0], static_cast<float>(std::ldexp(1.0, e - 128))) << "e " << e;
    EXPECT_EQ(got[16], -got[0]) << "e " << e;
    EXPECT_GT(got[0], 0.0f) << "e " << e;
  }
}

TEST(Decode, FloatTypesAreWidenedAtAnyLengthAndAlignment) {
  for (const size_t n :
       {size_t{0}, size_t{1}, size_t{7}, size_t{8}, size_t{9}, size_t{31}, size_t{100}}) {
    for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
      const size_t bytes = row_bytes(type, static_cast<int64_t>(n));
      std::vector<std::byte> storage(bytes + 1);
      std::byte* row = storage.data() + 1;  // odd on purpose
      std::vector<float> expected(n);
      for (size_t i = 0; i < n; ++i) {
        const auto x = static_cast<float>(static_cast<int>(random_bits(5, i) % 2001) - 1000) / 8.0f;
        if (type == Type::f32) {
          expected[i] = x;
          std::memcpy(row + 4 * i, &x, 4);
        } else {
          const uint16_t half = type == Type::f16 ? f32_to_f16(x) : f32_to_bf16(x);
          expected[i] = type == Type::f16 ? f16_to_f32(half) : bf16_to_f32(half);
          std::memcpy(row + 2 * i, &half, 2);
        }
      }
      std::vector<float> got(n);
      decode_row(type, row, got);
      for (size_t i = 0; i < n; ++i) {
        EXPECT_EQ(got[i], expected[i]) << type_name(type) << " n " << n << " element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::quant
