// Part A of the contract: int8 activation blocks.
// SPDX-License-Identifier: Apache-2.0
#include "quant/activation.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <vector>

#include "base/random.h"

namespace sluice::quant {
namespace {

struct Quantised {
  std::vector<int8_t> q;
  std::vector<float> d, y;
};

Quantised quantize(const std::vector<float>& x) {
  Quantised out{std::vector<int8_t>(x.size(), 99), std::vector<float>(x.size() / 32, -1.0f),
                std::vector<float>(x.size() / 32, -1.0f)};
  quantize_activation(x, out.q.data(), out.d.data(), out.y.data());
  return out;
}

// Random signs and mantissas, exponents 2^low .. 2^high.
float random_float(uint64_t seed, uint64_t index, int low, int high) {
  const uint64_t bits = random_bits(seed, index);
  const int exponent = low + static_cast<int>((bits >> 32) % static_cast<uint64_t>(high - low + 1));
  const float mantissa = 1.0f + static_cast<float>(bits & 0x7fffff) * 0x1p-23f;
  return std::ldexp((bits >> 31 & 1) != 0 ? -mantissa : mantissa, exponent);
}

TEST(Activation, FollowsTheContractLiterally) {
  for (int scale = -120; scale <= 120; scale += 8) {
    std::vector<float> x(32 * 20);
    for (size_t i = 0; i < x.size(); ++i) {
      x[i] = random_float(1000 + static_cast<uint64_t>(scale), i, scale - 6, scale);
    }
    // Half of the values a few ulps around a tie, where another way to divide shows. Element 0 of
    // each block keeps the largest magnitude.
    for (size_t b = 0; b < x.size(); b += 32) {
      x[b] = random_float(77, b, scale + 1, scale + 1);
      for (size_t i = 1; i < 32; i += 2) {
        const auto bits = random_bits(78, b + i);
        const double tie = (static_cast<double>(bits % 60) + 0.5) * x[b] / 127.0;
        const auto ulps = static_cast<int32_t>(bits >> 32 & 3) - 1;
        x[b + i] = std::bit_cast<float>(std::bit_cast<int32_t>(static_cast<float>(tie)) + ulps);
      }
    }
    const Quantised got = quantize(x);
    for (size_t b = 0; b < 20; ++b) {
      float amax = 0;
      for (size_t i = 0; i < 32; ++i) amax = std::max(amax, std::fabs(x[32 * b + i]));
      const bool zero = amax < std::ldexp(1.0f, -100);
      const float id = 127.0f / amax;
      int sum = 0;
      for (size_t i = 0; i < 32; ++i) {
        const float product = x[32 * b + i] * id;
        const int expected = zero ? 0 : static_cast<int>(std::nearbyint(product));
        sum += expected;
        ASSERT_EQ(got.q[32 * b + i], expected)
            << "scale 2^" << scale << " block " << b << " i " << i;
      }
      const float d = zero ? 0.0f : amax * static_cast<float>(1.0 / 127.0);
      ASSERT_EQ(got.d[b], d) << "scale 2^" << scale << " block " << b;
      ASSERT_EQ(got.y[b], d * static_cast<float>(sum)) << "scale 2^" << scale << " block " << b;
    }
  }
}

TEST(Activation, TheLargestMagnitudeBecomes127WhateverItsMantissa) {
  for (uint64_t k = 0; k < 20000; ++k) {
    const float amax = random_float(7, k, -100, 127);
    std::vector<float> x(32, 0.0f);
    x[k % 32] = amax;
    x[(k + 5) % 32] = -amax;
    const Quantised got = quantize(x);
    ASSERT_EQ(got.q[k % 32], amax > 0 ? 127 : -127) << "amax " << amax;
    ASSERT_EQ(got.q[(k + 5) % 32], amax > 0 ? -127 : 127) << "amax " << amax;
    ASSERT_TRUE(std::isfinite(got.d[0])) << "amax " << amax;
  }
}

TEST(Activation, TiesGoToTheEvenInteger) {
  std::vector<float> x(32, 0.0f);
  x[0] = 127.0f;  // 127 / amax = 1: the values below are their own products
  const float in[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, -2.5f, 125.5f, -126.5f, 0.50001f};
  const int expected[] = {0, 2, 2, 0, -2, -2, 126, -126, 1};
  for (size_t i = 0; i < std::size(in); ++i) x[i + 1] = in[i];
  const Quantised got = quantize(x);
  for (size_t i = 0; i < std::size(in); ++i) {
    EXPECT_EQ(got.q[i + 1], expected[i]) << "x " << in[i];
  }
}

TEST(Activation, BlocksBelowTwoToTheMinus100AreZero) {
  const float floor = 0x1p-100f;
  for (const float amax : {std::nextafter(floor, 0.0f), 1e-38f, 1e-45f, 0.0f, -1e-40f}) {
    std::vector<float> x(32, amax);
    x[3] = -amax;
    const Quantised got = quantize(x);
    for (size_t i = 0; i < 32; ++i) EXPECT_EQ(got.q[i], 0) << "amax " << amax << " i " << i;
    EXPECT_EQ(std::bit_cast<uint32_t>(got.d[0]), 0u) << "amax " << amax;
    EXPECT_EQ(std::bit_cast<uint32_t>(got.y[0]), 0u) << "amax " << amax;
  }
  const Quantised at_floor = quantize(std::vector<float>(32, floor));
  EXPECT_EQ(at_floor.q[0], 127);
  EXPECT_EQ(at_floor.d[0], floor * static_cast<float>(1.0 / 127.0));
}

TEST(Activation, DenormalsBesideNormalsBecomeZeroWithoutNaN) {
  for (const float big : {1.0f, 3e38f, 0x1p-100f}) {
    std::vector<float> x(32, 1e-42f);
    x[17] = -big;
    const Quantised got = quantize(x);
    for (size_t i = 0; i < 32; ++i)
      EXPECT_EQ(got.q[i], i == 17 ? -127 : 0) << "big " << big << " i " << i;
    EXPECT_EQ(got.y[0], got.d[0] * -127.0f) << "big " << big;
    EXPECT_TRUE(std::isfinite(got.y[0])) << "big " << big;
  }
}

TEST(Activation, EachBlockHasItsOwnScale) {
  std::vector<float> x(96, 0.0f);
  x[31] = 1.0f;
  x[32] = 100.0f;
  const Quantised got = quantize(x);
  EXPECT_EQ(got.q[31], 127);
  EXPECT_EQ(got.q[32], 127);
  EXPECT_EQ(got.d[1], 100.0f * static_cast<float>(1.0 / 127.0));
  EXPECT_EQ(got.d[2], 0.0f);
}

}  // namespace
}  // namespace sluice::quant
