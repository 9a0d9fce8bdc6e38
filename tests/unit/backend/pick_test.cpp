// The best of a row's logits: as many as asked for, in their order, and none of numbers that are
// not finite.
// SPDX-License-Identifier: Apache-2.0
#include "backend/pick.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "base/random.h"

namespace sluice::backend::test {
namespace {

std::vector<float> some_logits(size_t n, uint64_t seed) {
  std::vector<float> logits(n);
  for (size_t i = 0; i < n; ++i) {  // few values, so that many are equal
    logits[i] = static_cast<float>(random_bits(seed, i) % 97) - 48.0f;
  }
  return logits;
}

TEST(Pick, TellsTheBestInOrderAndOfEqualsTheLowerToken) {
  for (const size_t n_vocab : {1, 2, 255, 256, 257, 5000}) {
    const std::vector<float> logits = some_logits(n_vocab, n_vocab);
    std::vector<TokenId> order(n_vocab);
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, std::greater{},
                             [&](TokenId t) { return logits[static_cast<size_t>(t)]; });
    for (const int n_best : {1, 2, 17, kMaxBest}) {
      PickedRow row{};
      pick_best(logits, n_best, row);
      EXPECT_TRUE(row.is_finite);
      ASSERT_EQ(row.n_best, std::min<int64_t>(n_best, std::ssize(logits)));
      for (int i = 0; i < row.n_best; ++i) {
        EXPECT_EQ(row.best[i].token, order[static_cast<size_t>(i)]) << n_vocab << ", rank " << i;
        EXPECT_EQ(row.best[i].logit, logits[static_cast<size_t>(row.best[i].token)]);
      }
    }
  }
}

TEST(Pick, OfNumbersThatAreNotFiniteItTellsThatAlone) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
        -std::numeric_limits<float>::infinity()}) {
    for (const size_t at : {0, 499, 999}) {
      std::vector<float> logits = some_logits(1000, 3);
      logits[at] = bad;
      PickedRow row{};
      pick_best(logits, 5, row);
      EXPECT_FALSE(row.is_finite);
      EXPECT_EQ(row.n_best, 0);
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
