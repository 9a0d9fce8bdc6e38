// f16 and bf16 conversions: all 65536 halves, and the edges of rounding.
// SPDX-License-Identifier: Apache-2.0
#include "quant/half.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

uint32_t bits_of(float x) { return std::bit_cast<uint32_t>(x); }

bool is_nan_f16(uint32_t half) { return (half & 0x7fff) > 0x7c00; }

TEST(Half, EveryF16WidensToItsDefinition) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const uint8_t bytes[2] = {static_cast<uint8_t>(half), static_cast<uint8_t>(half >> 8)};
    const float got = f16_to_f32(static_cast<uint16_t>(half));
    if (is_nan_f16(half)) {
      EXPECT_TRUE(std::isnan(got)) << "half " << half << " got " << got;
    } else {
      EXPECT_EQ(bits_of(got), bits_of(static_cast<float>(spec_half(bytes)))) << "half " << half;
    }
  }
}

TEST(Half, PortableAndInstructionConversionsAgreeBitForBit) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto h = static_cast<uint16_t>(half);
    ASSERT_EQ(bits_of(f16_to_f32(h)), bits_of(f16_to_f32_portable(h))) << "half " << half;
  }
  for (uint64_t k = 0; k < 2'000'000; ++k) {
    const float x = std::bit_cast<float>(static_cast<uint32_t>(random_bits(3, k)));
    ASSERT_EQ(f32_to_f16(x), f32_to_f16_portable(x)) << "bits " << bits_of(x);
  }
  // Random bits seldom fall into f16's range, so that is swept as well: 2^-26 .. 2^17.
  for (uint32_t bits = 0x32800000u; bits < 0x48000000u; bits += 101) {
    const float x = std::bit_cast<float>(bits);
    ASSERT_EQ(f32_to_f16(x), f32_to_f16_portable(x)) << "bits " << bits;
    ASSERT_EQ(f32_to_f16(-x), f32_to_f16_portable(-x)) << "bits " << bits;
  }
}

TEST(Half, EveryF16SurvivesTheRoundTrip) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto h = static_cast<uint16_t>(half);
    const uint32_t expected = is_nan_f16(half) ? half | 0x0200u : half;  // NaN comes back quiet
    EXPECT_EQ(f32_to_f16(f16_to_f32(h)), expected) << "half " << half;
    EXPECT_EQ(f32_to_f16_portable(f16_to_f32_portable(h)), expected) << "half " << half;
  }
}

// Halfway between neighbours h and h+1 the even one wins; a hair above or below, the nearer one.
TEST(Half, F16RoundsToNearestWithTiesToEvenBetweenAllNeighbours) {
  for (uint32_t h = 0; h < 0x7bff; ++h) {
    const float low = f16_to_f32(static_cast<uint16_t>(h));
    const float high = f16_to_f32(static_cast<uint16_t>(h + 1));
    const float middle = low + (high - low) / 2;  // exact: 12 bits
    const uint32_t even = h % 2 == 0 ? h : h + 1;
    for (const auto narrow : {f32_to_f16, f32_to_f16_portable}) {
      ASSERT_EQ(narrow(middle), even) << "above half " << h;
      ASSERT_EQ(narrow(std::nextafter(middle, 0.0f)), h) << "above half " << h;
      ASSERT_EQ(narrow(std::nextafter(middle, INFINITY)), h + 1) << "above half " << h;
      ASSERT_EQ(narrow(-middle), even | 0x8000u) << "below half -" << h;
    }
  }
}

TEST(Half, F16OverflowsFrom65520On) {
  EXPECT_EQ(f32_to_f16(65504.0f), 0x7bff);
  EXPECT_EQ(f32_to_f16(std::nextafter(65520.0f, 0.0f)), 0x7bff);
  EXPECT_EQ(f32_to_f16(65520.0f), 0x7c00);
  EXPECT_EQ(f32_to_f16(-1e30f), 0xfc00);
  EXPECT_EQ(f32_to_f16(INFINITY), 0x7c00);
  EXPECT_TRUE(is_nan_f16(f32_to_f16(NAN)));
}

TEST(Half, EveryBf16SurvivesTheRoundTripAndNaNStaysNaN) {
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto h = static_cast<uint16_t>(half);
    const float wide = bf16_to_f32(h);
    EXPECT_EQ(bits_of(wide), half << 16);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(wide)))) << "half " << half;
    } else {
      EXPECT_EQ(f32_to_bf16(wide), half);
    }
  }
  // A NaN with its payload in the lower half only: plain truncation would make it infinity.
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0x7f800001u)))));
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(std::bit_cast<float>(0xffffffffu)))));
}

TEST(Half, Bf16RoundsToNearestWithTiesToEven) {
  for (uint32_t h = 0; h < 0x7f80; ++h) {
    const uint32_t middle = h << 16 | 0x8000u;
    const uint32_t even = h % 2 == 0 ? h : h + 1;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle)), even) << "above " << h;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle - 1)), h) << "above " << h;
    ASSERT_EQ(f32_to_bf16(std::bit_cast<float>(middle + 1)), h + 1) << "above " << h;
  }
}

}  // namespace
}  // namespace sluice::quant
