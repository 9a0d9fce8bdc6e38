// How many of a layer's hottest experts a prompt copies before it knows its routing.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/prompt_guess.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::policy {
namespace {

TEST(PromptGuess, ALayerWithoutOneBeforeItIsNotGuessed) {
  PromptGuess guess;
  EXPECT_EQ(guess.n_sure(128), 0);
  guess.learn(128, 128);
  EXPECT_EQ(guess.n_sure(128), 128);
  guess.begin_step();
  EXPECT_EQ(guess.n_sure(128), 0);
}

// 78 of 128, as 156 tokens of a recorded text use: all would be a third too many.
TEST(PromptGuess, GoesAsFarDownAsNineInTenAreUsed) {
  PromptGuess guess;
  guess.learn(78, 128);
  EXPECT_EQ(guess.n_sure(128), 16);  // 128 * 0.1 / (2 * 50 / 128)
  guess.learn(115, 128);
  EXPECT_EQ(guess.n_sure(128), 63);
  guess.learn(122, 128);  // the coldest is used with a chance of 0.906
  EXPECT_EQ(guess.n_sure(128), 128);
}

TEST(PromptGuess, MoreThatAreUsedNeverMakeFewerSure) {
  PromptGuess guess;
  int before = 0;
  for (int n_used = 0; n_used <= 128; ++n_used) {
    guess.learn(n_used, 128);
    EXPECT_GE(guess.n_sure(128), before);
    EXPECT_LE(guess.n_sure(128), 128);
    before = guess.n_sure(128);
  }
}

TEST(PromptGuess, SortsTheHottestFirstAndTheLowerOfTwoAlike) {
  std::vector<ExpertId> experts{ExpertId(0), ExpertId(1), ExpertId(2), ExpertId(3)};
  sort_by_heat(experts, std::vector<uint32_t>{3, 9, 3, 10});
  EXPECT_EQ(experts, (std::vector{ExpertId(3), ExpertId(1), ExpertId(0), ExpertId(2)}));
}

}  // namespace
}  // namespace sluice::policy
