// Ranking and selecting against full sorts. Weights are small whole numbers here, so that sums are
// exact and every answer is the only right one.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/rank.h"

#include <gtest/gtest.h>

#include <functional>

#include "unit/sampler/logits.h"

namespace sluice::sampler::test {
namespace {

std::vector<uint64_t> keys_of(const std::vector<float>& values) {
  std::vector<uint64_t> keys;
  for (size_t i = 0; i < values.size(); ++i) keys.push_back(rank_key(values[i], i));
  return keys;
}

std::vector<uint64_t> sorted(std::vector<uint64_t> keys) {
  std::sort(keys.begin(), keys.end(), std::greater<>());
  return keys;
}

std::vector<uint64_t> sorted(std::span<const uint64_t> keys) {
  return sorted(std::vector<uint64_t>(keys.begin(), keys.end()));
}

// The n best of all.
std::vector<uint64_t> best_of(const std::vector<uint64_t>& all, size_t n) {
  std::vector<uint64_t> best = sorted(all);
  best.resize(std::min(n, all.size()));
  return best;
}

TEST(Rank, KeysOrderAsValuesDoAndThenByIndex) {
  constexpr float kMost = std::numeric_limits<float>::max();
  const float values[] = {-kInf,  -kMost, -1.5f, -1.0f, -1e-40f, 0.0f,
                          1e-40f, 1e-20f, 1.0f,  1.5f,  kMost,   kInf};
  for (size_t a = 0; a < std::size(values); ++a) {
    for (size_t b = 0; b < std::size(values); ++b) {
      EXPECT_EQ(rank_key(values[a], 7) > rank_key(values[b], 3), a > b)
          << values[a] << " at 7 and " << values[b] << " at 3";
    }
    EXPECT_EQ(value_of(rank_key(values[a], 5)), values[a]);
    EXPECT_EQ(index_of(rank_key(values[a], 151935)), 151935u);
  }
}

TEST(Rank, BothZerosAreEqual) {
  EXPECT_EQ(rank_key(-0.0f, 3), rank_key(0.0f, 3));
  EXPECT_GT(rank_key(-0.0f, 0), rank_key(0.0f, 1));
}

TEST(Rank, SelectsTheBestOfEveryShape) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<uint64_t> all = keys_of(make_logits(shape, n, 1));
      for (const size_t k : {size_t{0}, size_t{1}, n / 2, n, n + 5}) {
        std::vector<uint64_t> keys = all;
        const auto best = select_best(keys, k);
        const std::vector<uint64_t> expected = best_of(all, k);
        ASSERT_EQ(sorted(best), expected) << describe(shape, n) << ", " << k;
        if (k > 0 && k < n) {
          EXPECT_EQ(best.back(), expected.back()) << "the last is the k-th best";
        }
      }
    }
  }
}

TEST(Rank, SelectsTheFewestThatReachAWeight) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<uint64_t> all = keys_of(make_logits(shape, n, 2));
      const std::vector<uint64_t> order = sorted(all);
      std::vector<float> weights(n);
      for (size_t i = 0; i < n; ++i) weights[i] = static_cast<float>(random_bits(3, i) % 8);
      const double total = sum_of(n, [&](size_t i) { return weights[i]; });
      for (const double target : {0.0, 1.0, std::floor(total / 3), total - 1, total, total + 1}) {
        double sum = 0.0;
        size_t m = 0;
        while (m < n && (m == 0 || sum < target)) sum += weights[index_of(order[m++])];
        for (const size_t min_keep : {size_t{0}, m, m + 2}) {
          std::vector<uint64_t> keys = all;
          ASSERT_EQ(sorted(select_weight(keys, weights, target, min_keep)),
                    best_of(all, std::max(m, min_keep)))
              << describe(shape, n) << ", target " << target << ", min_keep " << min_keep;
        }
      }
    }
  }
}

// An organ pipe is bad for the median of three; the answer, and an end, are what counts.
TEST(Rank, EndsForKeysInAnAwkwardOrder) {
  std::vector<float> values(20000);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(std::min(i, values.size() - i));
  }
  const std::vector<float> weights(values.size(), 1.0f);
  std::vector<uint64_t> keys = keys_of(values);
  EXPECT_EQ(sorted(select_weight(keys, weights, 12345.0, 0)), best_of(keys_of(values), 12345));
}

}  // namespace
}  // namespace sluice::sampler::test
