// The greedy sampler: the largest wins, and of equal ones the first.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/greedy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/random.h"
#include "sampler/lanes.h"

namespace sluice::sampler {
namespace {

TEST(Greedy, TakesTheLargestAndOfEqualOnesTheFirst) {
  struct Case {
    std::vector<float> logits;
    TokenId expected;
  };
  for (const Case& c : {
           Case{{-3.0f}, 0},
           Case{{1, 2, 3}, 2},
           Case{{3, 2, 1}, 0},
           Case{{-3, -1, -2}, 1},
           Case{{0, 5, 5, 5}, 1},
           Case{{7, 7}, 0},
           Case{{-0.0f, 0.0f}, 0},
           Case{{0.0f, -0.0f}, 0},
           Case{{-kInf, -kInf}, 0},
           Case{{-kInf, -1e30f, -kInf}, 1},
           Case{{1, kInf, kInf}, 1},
           Case{{1.0f, 1.0f + 0x1p-23f}, 1},
       }) {
    EXPECT_EQ(greedy(c.logits), c.expected) << testing::PrintToString(c.logits);
  }
}

TEST(Greedy, FindsTheLargestWhereverItStands) {
  for (const size_t n : {1, 2, 7, 8, 9, 31, 259}) {
    std::vector<float> logits(n);
    for (size_t i = 0; i < n; ++i) logits[i] = random_signed(random_bits(n, i));
    for (size_t best = 0; best < n; ++best) {
      const float before = std::exchange(logits[best], 1.5f);
      EXPECT_EQ(greedy(logits), static_cast<TokenId>(best)) << "of " << n;
      logits[best] = before;
    }
  }
}

TEST(GreedyDeathTest, RefusesNoLogits) { EXPECT_DEATH(greedy({}), "CHECK"); }

}  // namespace
}  // namespace sluice::sampler
