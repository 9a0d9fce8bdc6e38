// Part B of the contract for float types: eight fma chains in a fixed order.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "quant/dot.h"
#include "quant/encode.h"
#include "quant/half.h"

namespace sluice::quant {
namespace {

std::vector<float> random_floats(int64_t n, uint64_t seed) {
  std::vector<float> x(static_cast<size_t>(n));
  for (size_t i = 0; i < x.size(); ++i) x[i] = random_signed(random_bits(seed, i));
  return x;
}

float stored_value(Type type, float x) {
  if (type == Type::f16) return f16_to_f32(f32_to_f16(x));
  if (type == Type::bf16) return bf16_to_f32(f32_to_bf16(x));
  return x;
}

float literal_dot_float(Type type, const std::vector<float>& w, const std::vector<float>& x) {
  float c[8] = {};
  for (size_t i = 0; i < w.size(); ++i)
    c[i % 8] = std::fma(stored_value(type, w[i]), x[i], c[i % 8]);
  const float c04 = c[0] + c[4], c15 = c[1] + c[5], c26 = c[2] + c[6], c37 = c[3] + c[7];
  const float c0426 = c04 + c26, c1537 = c15 + c37;
  return c0426 + c1537;
}

constexpr int64_t kLengths[] = {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 64, 100, 255, 2048, 2055};

TEST(DotFloat, EqualsTheLiteralContractAtEveryLengthAndType) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (const int64_t n : kLengths) {
      const std::vector<float> w = random_floats(n, 1), x = random_floats(n, 2);
      std::vector<std::byte> row(row_bytes(type, n) + 1);
      encode_row(type, w, row.data() + 1);  // odd on purpose
      const float expected = literal_dot_float(type, w, x);
      const float got = dot_float(type, row.data() + 1, x.data(), n);
      EXPECT_EQ(std::bit_cast<uint32_t>(got), std::bit_cast<uint32_t>(expected))
          << type_name(type) << " n " << n << " expected " << expected << " got " << got;
    }
  }
}

TEST(DotFloat, TwoRowsOfFloatsFollowTheSameOrder) {
  for (const int64_t n : kLengths) {
    const std::vector<float> a = random_floats(n, 3), b = random_floats(n, 4);
    EXPECT_EQ(dot_f32(a.data(), b.data(), n), literal_dot_float(Type::f32, a, b)) << "n " << n;
  }
}

TEST(DotFloat, AnyOtherOrderWouldShow) {
  // If these three agreed, the tests above could not tell the contract from its neighbours.
  const std::vector<float> a = random_floats(2048, 5), b = random_floats(2048, 6);
  float one_chain = 0, unfused[8] = {};
  for (size_t i = 0; i < a.size(); ++i) {
    one_chain = std::fma(a[i], b[i], one_chain);
    const float product = a[i] * b[i];
    unfused[i % 8] = unfused[i % 8] + product;
  }
  const float without_fma = ((unfused[0] + unfused[4]) + (unfused[2] + unfused[6])) +
                            ((unfused[1] + unfused[5]) + (unfused[3] + unfused[7]));
  const float got = dot_f32(a.data(), b.data(), 2048);
  EXPECT_NE(got, one_chain);
  EXPECT_NE(got, without_fma);
}

}  // namespace
}  // namespace sluice::quant
