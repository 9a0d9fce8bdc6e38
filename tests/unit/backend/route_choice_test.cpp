// The choice of one token's experts from given scores: order, ties and extremes.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/route.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {
namespace {

struct Choice {
  std::vector<int32_t> experts;
  std::vector<float> weights, p;
};

Choice choose(std::vector<float> scores, size_t n_used, bool renormalize) {
  Choice out{std::vector<int32_t>(n_used, -1), std::vector<float>(n_used, -1.0f), {}};
  cpu::choose_experts(scores, renormalize, out.experts, out.weights);
  out.p = scores;
  return out;
}

// Scores that are multiples of 1/4 have plainly different or equal probabilities: many ties.
TEST(ChooseExperts, SortsByScoreAndThenByNumber) {
  for (const size_t n : {1, 2, 3, 8, 60, 128, 257}) {
    for (uint64_t seed = 0; seed < 20; ++seed) {
      std::vector<float> scores(n);
      for (size_t e = 0; e < n; ++e) {
        scores[e] = static_cast<float>(random_bits(seed, e) % 8) * 0.25f;
      }
      std::vector<int32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](int32_t a, int32_t b) {
        return scores[static_cast<size_t>(a)] > scores[static_cast<size_t>(b)];
      });
      for (const size_t n_used : {size_t{1}, size_t{2}, size_t{8}, n - 1, n}) {
        if (n_used < 1 || n_used > n) continue;
        const Choice got = choose(scores, n_used, seed % 2 == 0);
        for (size_t k = 0; k < n_used; ++k) {
          ASSERT_EQ(got.experts[k], order[k])
              << n_used << " of " << n << ", seed " << seed << ", rank " << k;
        }
      }
    }
  }
}

TEST(ChooseExperts, LeavesTheSoftmaxInTheScoresAndTakesItsWeightsFromThere) {
  const std::vector<float> scores = random_values(60, 3, 2.0f);
  const Choice got = choose(scores, 6, false);
  expect_within(softmax_reference(exactly(scores)), got.p, "softmax");
  for (size_t k = 0; k < 6; ++k) {
    EXPECT_EQ(got.weights[k], got.p[static_cast<size_t>(got.experts[k])]) << "rank " << k;
  }
}

TEST(ChooseExperts, UsingAllOfThemGivesEachOnceAndTheWholeWeight) {
  for (const bool renormalize : {false, true}) {
    const Choice got = choose(random_values(33, 4, 3.0f), 33, renormalize);
    std::vector<int32_t> sorted = got.experts;
    std::ranges::sort(sorted);
    for (int32_t e = 0; e < 33; ++e) EXPECT_EQ(sorted[static_cast<size_t>(e)], e);
    // 33 divisions, and 32 additions in the sum they are divided by (twice when renormalised).
    const double sum = std::accumulate(got.weights.begin(), got.weights.end(), 0.0);
    EXPECT_NEAR(sum, 1.0, kSlack * 2 * 33 * kUnit) << renormalize;
  }
}

TEST(ChooseExperts, SurvivesScoresFarApart) {
  const Choice plain = choose({-500.0f, 900.0f, 0.0f, 899.0f}, 3, false);
  EXPECT_EQ(plain.experts, (std::vector<int32_t>{1, 3, 0}));
  for (const float w : plain.weights) EXPECT_TRUE(std::isfinite(w)) << w;
  // 1 / (1 + 1/e), which the far ones (at most exp(-87)) cannot move.
  EXPECT_NEAR(plain.weights[0], 0.7310585786300049, 6 * kUnit);
  const Choice divided = choose({-500.0f, 900.0f, 0.0f, 899.0f}, 1, true);
  EXPECT_EQ(divided.weights[0], 1.0f);
}

TEST(ChooseExperts, AllEqualScoresGiveTheFirstExpertsEqualWeights) {
  const Choice got = choose(std::vector<float>(64, -3.0f), 8, false);
  for (size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(got.experts[k], static_cast<int32_t>(k));
    EXPECT_EQ(got.weights[k], 1.0f / 64);
  }
}

}  // namespace
}  // namespace sluice::backend::test
