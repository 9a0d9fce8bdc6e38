// The inner loops of attention with AVX-512 equal plain ones in every bit, also on CPUs where they
// are not chosen.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attend_wide.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "quant/decode.h"
#include "quant/dot.h"
#include "quant/encode.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

constexpr int kQueries = cpu::kWideQueries;
constexpr int kDim = 96;
constexpr int kValues = 5;
constexpr int kStride = 112;  // of rows of floats

// Rows of the type with random values, and what they stand for.
struct FloatRows {
  FloatRows(Type row_type, int n)
      : type(row_type), row_bytes(quant::row_bytes(row_type, kDim)), data(row_bytes * n) {
    values = random_values(n * kDim, 5, 1.0f);
    for (int r = 0; r < n; ++r) {
      const std::span row(values.data() + r * kDim, kDim);
      std::byte* const stored = data.data() + static_cast<size_t>(r) * row_bytes;
      quant::encode_row(type, row, stored);
      quant::decode_row(type, stored, row);
    }
  }
  cpu::WideRows view() const { return {type, data.data(), static_cast<int64_t>(row_bytes)}; }
  const float* row(int r) const { return values.data() + r * kDim; }

  Type type;
  size_t row_bytes;
  std::vector<std::byte> data;
  std::vector<float> values;
};

class WideAttend : public ::testing::TestWithParam<Type> {
  void SetUp() override {
    if (!cpu::can_attend_wide()) GTEST_SKIP() << "this CPU has no AVX-512";
  }
};
INSTANTIATE_TEST_SUITE_P(FloatTypes, WideAttend, testing::Values(Type::f32, Type::f16, Type::bf16),
                         [](const auto& type) { return name_of(type.param); });

TEST_P(WideAttend, DotsAreTheContracts) {
  const FloatRows keys(GetParam(), 4);
  const std::vector<float> queries = random_values(kQueries * kStride, 6, 1.0f);
  std::vector<float> scores(kQueries * 7);
  cpu::wide_dots(queries.data(), kStride, keys.view(), kDim, scores.data(), 7);
  for (int q = 0; q < kQueries; ++q) {
    for (int k = 0; k < 4; ++k) {
      const float expected = quant::dot_f32(keys.row(k), queries.data() + q * kStride, kDim);
      const float found = scores[static_cast<size_t>(q * 7 + k)];
      EXPECT_EQ(std::bit_cast<uint32_t>(found), std::bit_cast<uint32_t>(expected))
          << "query " << q << ", key " << k << ": " << found << ", expected " << expected;
    }
  }
}

TEST_P(WideAttend, WeighsValuesInOrder) {
  const FloatRows values(GetParam(), kValues);
  const std::vector<float> weights = random_values(kQueries * 11, 7, 1.0f);
  const std::vector<float> factors = random_values(kQueries, 8, 1.0f);
  const std::vector<float> before = random_values(kQueries * kStride, 9, 1.0f);
  std::vector<float> o = before;
  cpu::wide_weigh({weights.data(), 11, factors.data(), kValues}, values.view(), o.data(), kStride);
  for (int q = 0; q < kQueries; ++q) {
    for (int c = 0; c < kStride; ++c) {
      const auto at = static_cast<size_t>(q * kStride + c);
      float expected = before[at];
      if (c < 32) {
        expected *= factors[static_cast<size_t>(q)];
        for (int t = 0; t < kValues; ++t) {
          expected = std::fma(weights[static_cast<size_t>(q * 11 + t)], values.row(t)[c], expected);
        }
      }
      EXPECT_EQ(std::bit_cast<uint32_t>(o[at]), std::bit_cast<uint32_t>(expected))
          << "query " << q << ", column " << c << ": " << o[at] << ", expected " << expected;
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
