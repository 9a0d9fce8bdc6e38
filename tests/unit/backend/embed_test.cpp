// Ops::embed: rows of the table as plain floats, for every type.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ops.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {
namespace {

// The product of scale and weight is rounded at most once, and so is the sum with the minimum.
TEST(Embed, GivesTheTokensRowsForEveryType) {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  constexpr int64_t kCols = 512, kVocab = 19;
  const std::vector<TokenId> tokens = {0, 18, 7, 7, 3};  // first, last, one twice
  for (const quant::Type type : quant::supported_types()) {
    const Weight table(type, {kCols, kVocab}, 5);
    Rows x(std::ssize(tokens), kCols);
    ops->embed(table.view(), TokenStep(tokens).view(), x.view());
    for (int64_t r = 0; r < x.n_rows; ++r) {
      BoundedRow expected(kCols);
      for (int64_t k = 0; k < kCols; ++k) {
        const StoredValue v = table.at(tokens[static_cast<size_t>(r)], k);
        const double roundings = quant::is_float(type) ? 0 : 2;
        expected[static_cast<size_t>(k)] = {v.value(), roundings * kUnit * v.magnitude()};
      }
      expect_within(expected, x.row(r), name_of(type) + " row " + std::to_string(r));
      expect_sharp(expected, 1e-5, name_of(type));
    }
  }
}

TEST(Embed, TakesRowsOfAnyLengthThatTheTypeAllows) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  const std::vector<TokenId> tokens = {2, 0};
  for (const int64_t n_cols : {1, 7, 9, 33}) {
    for (const quant::Type type : {quant::Type::f32, quant::Type::f16, quant::Type::bf16}) {
      const Weight table(type, {n_cols, 3}, 6);
      Rows x(2, n_cols);
      ops->embed(table.view(), TokenStep(tokens).view(), x.view());
      for (int64_t i = 0; i < 2 * n_cols; ++i) {
        const double expected =
            table.at(tokens[static_cast<size_t>(i / n_cols)], i % n_cols).value();
        EXPECT_EQ(x.values[static_cast<size_t>(i)], expected)
            << name_of(type) << " of " << n_cols << ", index " << i;
      }
    }
  }
}

TEST(EmbedDeathTest, StopsAtATokenOutsideTheTable) {
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  const Weight table(quant::Type::f32, {4, 3}, 1);
  Rows x(1, 4);
  for (const TokenId token : {3, -1}) {
    const std::vector<TokenId> tokens = {token};
    EXPECT_DEATH(ops->embed(table.view(), TokenStep(tokens).view(), x.view()), "CHECK.*token")
        << token;
  }
}

}  // namespace
}  // namespace sluice::backend::test
