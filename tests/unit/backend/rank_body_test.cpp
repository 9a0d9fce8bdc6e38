// How the kernels rank and weigh experts (backend/cuda/rank.h), compiled by g++ with a warp as 32
// loops and a block as eight warps, against the CPU's choice and the contract.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/rank.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <vector>

#include "backend/cpu/route.h"
#include "base/random.h"
#include "quant/swiglu.h"

namespace sluice::backend::cuda {
namespace {

// Ranks of all experts, of which there may be `most`; all lanes of an expert must agree.
template <int most>
std::vector<int> ranks_of(const std::vector<float>& scores) {
  using RanksOf = Ranks<most>;
  const int n = static_cast<int>(scores.size());
  alignas(16) uint32_t keys[most];
  std::vector<RanksOf> warps;
  for (int w = 0; w < 8; ++w) {
    PerLane<float> own;
    EACH_LANE(lane) {
      const int i = kWarp * w + lane;
      own[lane] = i < n ? scores[static_cast<size_t>(i)] : 0.0f;
    }
    warps.emplace_back(own, n, keys, w);
  }
  std::vector<int> ranks(scores.size(), -1);
  for (int w = 0; w < 8; ++w) {
    const PerLane<int> got = warps[static_cast<size_t>(w)].rank();
    EACH_LANE(lane) {
      const int e = RanksOf::expert(w, lane);
      if (most == 128) {
        EXPECT_EQ(got[lane], got[lane ^ 1]) << "lanes of expert " << e;
      }
      EXPECT_EQ(RanksOf::is_first_lane(lane), lane == 0 || RanksOf::expert(w, lane - 1) != e);
      if (e >= n) {
        EXPECT_EQ(most, got[lane]) << "expert " << e << " of " << n;
        continue;
      }
      ranks[static_cast<size_t>(e)] = got[lane];
      if (std::isnan(scores[static_cast<size_t>(e)])) continue;
      const float score = warps[static_cast<size_t>(w)].score(lane);
      EXPECT_EQ(std::bit_cast<uint32_t>(scores[static_cast<size_t>(e)]),
                std::bit_cast<uint32_t>(score));
    }
  }
  return ranks;
}
std::vector<int> ranks_of(const std::vector<float>& scores) {
  return scores.size() <= 128 ? ranks_of<128>(scores) : ranks_of<kMostRanked>(scores);
}

// Scores a quarter apart, `n_values` different ones: with few of them there are many ties.
std::vector<float> scores_of(int n, int n_values, uint64_t seed) {
  std::vector<float> scores(static_cast<size_t>(n));
  for (size_t i = 0; i < scores.size(); ++i) {
    const auto value = static_cast<int>(random_bits(seed, i) % static_cast<uint64_t>(n_values));
    scores[i] = 0.25f * static_cast<float>(value - n_values / 2);
  }
  return scores;
}

TEST(RankBodyTest, RanksAreAStableOrderWithTiesToTheLowerExpert) {
  for (int n = 1; n <= kMostRanked; ++n) {
    for (const int n_values : {1, 3, 1000}) {
      const std::vector<float> scores = scores_of(n, n_values, static_cast<uint64_t>(n));
      std::vector<size_t> order(scores.size());
      std::iota(order.begin(), order.end(), size_t{0});
      std::stable_sort(order.begin(), order.end(),
                       [&](size_t a, size_t b) { return scores[a] > scores[b]; });
      const std::vector<int> ranks = ranks_of(scores);
      for (size_t k = 0; k < order.size(); ++k) {
        ASSERT_EQ(static_cast<int>(k), ranks[order[k]])
            << n << " experts, " << n_values << " values, expert " << order[k];
      }
    }
  }
}

// The same order by one warp, for more experts too, and for scores that are no numbers.
TEST(RankBodyTest, TheBestOfARowComeInOrderWithTiesToTheLowerExpert) {
  for (const int n : {1, 5, 32, 33, 128, 500, 1024}) {
    for (const int n_values : {1, 3, 1000}) {
      std::vector<float> scores = scores_of(n, n_values, static_cast<uint64_t>(n));
      if (n == 33) scores[7] = std::bit_cast<float>(0xffffffffu);  // the lowest key there is
      std::vector<uint32_t> keys;
      for (const float score : scores) keys.push_back(ordered(score));
      std::vector<int> order(scores.size());
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](int a, int b) {
        return keys[static_cast<size_t>(a)] > keys[static_cast<size_t>(b)];
      });
      const int n_used = std::min(n, kMaxUsed);
      const Best best = best_of_row(keys.data(), n, n_used);
      if (n <= kMostRanked) {  // the same with keys in registers
        PerLane<OwnKeys> own{};
        for (int e = 0; e < n; ++e) {
          own[e % kWarp].of[e / kWarp] = key_of(scores[static_cast<size_t>(e)]);
        }
        const Best again = best_of_keys(own, n_used);
        for (int k = 0; k < n_used; ++k) {
          ASSERT_EQ(best.experts[k], again.experts[k])
              << n << " experts, " << n_values << " values, rank " << k;
          ASSERT_EQ(std::bit_cast<uint32_t>(best.scores[k]),
                    std::bit_cast<uint32_t>(again.scores[k]));
        }
      }
      for (int k = 0; k < n_used; ++k) {
        const int expert = order[static_cast<size_t>(k)];
        ASSERT_EQ(expert, best.experts[k])
            << n << " experts, " << n_values << " values, rank " << k;
        ASSERT_EQ(std::bit_cast<uint32_t>(scores[static_cast<size_t>(expert)]),
                  std::bit_cast<uint32_t>(best.scores[k]));
      }
    }
  }
}

// Whatever the scores are, each rank is given once.
TEST(RankBodyTest, RanksOfStrangeScoresAreAPermutation) {
  for (const size_t n : {size_t{60}, size_t{200}}) {
    std::vector<float> scores = {0.0f,     -0.0f,     std::nanf(""), -std::nanf(""),
                                 INFINITY, -INFINITY, 0x1p-149f,     -0x1p-149f,
                                 3.0e38f,  -3.0e38f,  INFINITY,      std::nanf("")};
    scores.resize(n, std::bit_cast<float>(0xffffffffu));
    std::vector<int> ranks = ranks_of(scores);
    std::sort(ranks.begin(), ranks.end());
    for (size_t k = 0; k < ranks.size(); ++k) ASSERT_EQ(static_cast<int>(k), ranks[k]);
  }
}

// The same experts as the CPU's, in its order. A weight is a quotient: the sum of n exponentials
// passes n / 32 additions in a lane and 5 between lanes here, n there; renormalised, n_used more
// and a second quotient on both sides. Each rounds by 2^-24.
TEST(RankBodyTest, ChoosesAndWeighsAsTheCpuDoes) {
  for (const int n : {8, 31, 32, 60, 64, 127, 128, 129, 256}) {
    for (const int n_used : {1, 2, 8}) {
      for (const bool renormalize : {false, true}) {
        SCOPED_TRACE(testing::Message() << n_used << " of " << n << ", " << renormalize);
        std::vector<float> scores = scores_of(n, 40, static_cast<uint64_t>(n + n_used));
        const std::vector<int> ranks = ranks_of(scores);
        PerLane<float> best{};
        std::vector<int32_t> chosen(static_cast<size_t>(n_used)), want(chosen.size());
        for (size_t e = 0; e < scores.size(); ++e) {
          if (ranks[e] >= n_used) continue;
          best[ranks[e]] = scores[e];
          chosen[static_cast<size_t>(ranks[e])] = static_cast<int32_t>(e);
        }
        const PerLane<float> got =
            expert_weights({RouterScore::softmax, renormalize, n_used, n}, best, scores.data());
        std::vector<float> weights(chosen.size());
        cpu::choose_experts(scores, renormalize, want, weights);
        ASSERT_EQ(want, chosen);
        const double bound = (n + n / 32.0 + 7 + (renormalize ? 2 * n_used + 2 : 0)) * 0x1p-24;
        for (int k = 0; k < n_used; ++k) {
          const float expected = weights[static_cast<size_t>(k)];
          ASSERT_NEAR(expected, got[k], bound * static_cast<double>(expected)) << "rank " << k;
        }
      }
    }
  }
}

TEST(RankBodyTest, SigmoidWeightsHaveTheBitsOfTheContract) {
  constexpr int kUsed = 8;
  PerLane<float> best{};
  for (int k = 0; k < kUsed; ++k) best[k] = 3.0f - 0.9f * static_cast<float>(k);
  const PerLane<float> plain =
      expert_weights({RouterScore::sigmoid, false, kUsed, 64}, best, nullptr);
  const PerLane<float> shares =
      expert_weights({RouterScore::sigmoid, true, kUsed, 64}, best, nullptr);
  float total = 0.0f;
  for (int k = 0; k < kUsed; ++k) total += quant::sigmoid(best[k]);
  for (int k = 0; k < kUsed; ++k) {
    const float want = quant::sigmoid(best[k]);
    ASSERT_EQ(std::bit_cast<uint32_t>(want), std::bit_cast<uint32_t>(plain[k])) << "rank " << k;
    ASSERT_EQ(std::bit_cast<uint32_t>(want / total), std::bit_cast<uint32_t>(shares[k]));
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
