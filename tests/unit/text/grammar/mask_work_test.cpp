// What token masks cost for grammars as people use them, counted in steps: most masks are
// remembered from an earlier one, and none comes near the limit at which a grammar is refused.
// bench_text prints the time.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "unit/text/grammar/usual_grammars.h"
#include "unit/text/grammar/vocabulary.h"

namespace sluice::text {
namespace {

constexpr size_t kTokens = 30000;
constexpr size_t kMasks = 400;

TEST(GrammarMaskWork, MostMasksTakeLessThanOneWalkThroughTheVocabulary) {
  auto tokens = test::natural_vocabulary(kTokens - 1);
  tokens.emplace_back();  // the end token
  const auto trie = std::make_shared<const TokenTrie>(std::move(tokens));
  const auto end = static_cast<TokenId>(trie->n_tokens() - 1);
  // A walk in which nothing is ambiguous takes a step for eight nodes.
  const size_t one_walk = trie->nodes().size() / 8;
  for (const test::UsualGrammar& c : test::usual_grammars()) {
    GrammarMatcher matcher(std::make_shared<const Grammar>(c.compile(c.text)), trie, {end});
    std::vector<uint64_t> bits((trie->n_tokens() + 63) / 64);
    std::vector<size_t> steps;
    test::Dice dice(1);
    while (steps.size() < kMasks) {
      steps.push_back(matcher.fill_mask(bits));
      const TokenId token = test::choose(bits, *trie, dice);
      if (token < 0 || token == end) {
        matcher.reset();
      } else {
        ASSERT_TRUE(matcher.accept(token)) << c.name;
      }
    }
    EXPECT_GE(steps[0], 1u) << c.name << ": nothing was remembered yet";
    std::ranges::sort(steps);
    EXPECT_LT(steps[kMasks / 2], one_walk) << c.name;
    // The limit is 64 steps a node and 2^17 more; an ordinary grammar takes one or two a node.
    EXPECT_LT(steps.back(), 8 * trie->nodes().size()) << c.name;
    std::printf("%-22s %6zu steps in the median, %7zu at most\n", c.name, steps[kMasks / 2],
                steps.back());
  }
}

}  // namespace
}  // namespace sluice::text
