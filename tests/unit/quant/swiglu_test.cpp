// Part C of the contract: EXP, sigmoid and SwiGLU.
// SPDX-License-Identifier: Apache-2.0
#include "quant/swiglu.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"

namespace sluice::quant {
namespace {

uint32_t float_bits(float x) { return std::bit_cast<uint32_t>(x); }

// The contract's text with its numbers, ldexp in place of the integer add.
float literal_exp(float t) {
  t = std::fmin(std::fmax(t, -87.0f), 88.0f);
  const float M = 1.5f * 8388608.0f;
  const float n = std::fma(t, 1.44269504088896341f, M) - M;
  float r = std::fma(n, -0.693359375f, t);
  r = std::fma(n, 2.12194440e-4f, r);
  const float c[] = {1.9875691500e-4f, 1.3981999507e-3f, 8.3334519073e-3f,
                     4.1665795894e-2f, 1.6666665459e-1f, 5.0000001201e-1f};
  float p = c[0];
  for (int k = 1; k < 6; ++k) p = std::fma(p, r, c[k]);
  const float e = std::fma(p, r * r, r) + 1.0f;
  return std::ldexp(e, static_cast<int>(n));
}

// Every `stride`-th float of [-87, 88].
template <typename Check>
void sweep(uint32_t stride, Check check) {
  for (uint32_t bits = 0; bits <= float_bits(88.0f); bits += stride)
    check(std::bit_cast<float>(bits));
  for (uint32_t bits = 0; bits <= float_bits(87.0f); bits += stride)
    check(-std::bit_cast<float>(bits));
}

TEST(Exp, EqualsTheLiteralContractBitForBit) {
  sweep(2003, [](float t) {
    ASSERT_EQ(float_bits(contract_exp(t)), float_bits(literal_exp(t))) << "t " << t;
  });
}

TEST(Exp, IsWithin1Point1UlpOfTheTrueExponential) {
  double worst = 0;
  sweep(499, [&](float t) {
    const double exact = std::exp(static_cast<double>(t));
    const double ulp = std::ldexp(1.0, std::ilogb(exact) - 23);
    const double error = std::abs(contract_exp(t) - exact) / ulp;
    worst = std::max(worst, error);
    ASSERT_LE(error, 1.1) << "t " << t << " expected " << exact << " got " << contract_exp(t);
  });
  EXPECT_GT(worst, 0.5);  // or the measure of error is broken
}

TEST(Exp, IsOneAtZeroAndConstantBeyondTheClamp) {
  EXPECT_EQ(contract_exp(0.0f), 1.0f);
  EXPECT_EQ(contract_exp(-0.0f), 1.0f);
  for (const float t : {88.0f, 88.5f, 100.0f, 1e30f, INFINITY}) {
    EXPECT_EQ(float_bits(contract_exp(t)), float_bits(contract_exp(88.0f))) << "t " << t;
  }
  for (const float t : {-87.0f, -87.5f, -104.0f, -1e30f, -INFINITY}) {
    EXPECT_EQ(float_bits(contract_exp(t)), float_bits(contract_exp(-87.0f))) << "t " << t;
  }
  EXPECT_TRUE(std::isnormal(contract_exp(-87.0f)));
  EXPECT_TRUE(std::isfinite(contract_exp(88.0f)));
}

TEST(Exp, NeverFallsAsItNearsTheClamp) {
  for (const float centre : {-87.0f, 88.0f}) {
    float previous = contract_exp(centre - 0.05f);
    int n_rises = 0;
    for (float t = centre - 0.05f; t < centre + 0.05f; t = std::nextafter(t, INFINITY)) {
      const float e = contract_exp(t);
      ASSERT_GE(e, previous) << "t " << t;
      n_rises += e > previous;
      previous = e;
    }
    EXPECT_GT(n_rises, 1000) << "centre " << centre;
  }
}

TEST(Sigmoid, IsOneOverOnePlusExp) {
  EXPECT_EQ(sigmoid(0.0f), 0.5f);
  for (float x = -100.0f; x < 100.0f; x += 0.37f) {
    EXPECT_EQ(sigmoid(x), 1.0f / (1.0f + literal_exp(-x))) << "x " << x;
    EXPECT_NEAR(sigmoid(x) + sigmoid(-x), 1.0, 0x1p-22) << "x " << x;
  }
}

TEST(SwiGlu, DividesFirstAndMultipliesThen) {
  const size_t n = 1000;
  std::vector<float> gate(n), up(n), h(n);
  for (size_t i = 0; i < n; ++i) {
    gate[i] = 12.0f * random_signed(random_bits(1, i));
    up[i] = 3.0f * random_signed(random_bits(2, i));
  }
  gate[0] = 200.0f, gate[1] = -200.0f, gate[2] = 0.0f;
  swiglu(gate, up, h.data());
  int n_other_order = 0;
  for (size_t i = 0; i < n; ++i) {
    const float g = gate[i];
    const float quotient = g / (1.0f + literal_exp(-g));
    ASSERT_EQ(float_bits(h[i]), float_bits(quotient * up[i])) << "i " << i << " g " << g;
    n_other_order += h[i] != sigmoid(g) * (g * up[i]);
    const double exact = g / (1.0 + std::exp(-static_cast<double>(g))) * up[i];
    ASSERT_NEAR(h[i], exact, 4 * 0x1p-23 * std::abs(exact) + 1e-35) << "i " << i << " g " << g;
  }
  EXPECT_GT(n_other_order, 100);  // so the order is visible in these numbers
}

TEST(SwiGlu, MayWriteOverItsInput) {
  std::vector<float> gate = {1.0f, -2.0f, 3.0f}, up = {4.0f, 5.0f, -6.0f}, h(3);
  swiglu(gate, up, h.data());
  std::vector<float> in_place = gate;
  swiglu(in_place, up, in_place.data());
  EXPECT_EQ(in_place, h);
}

}  // namespace
}  // namespace sluice::quant
