// Random grammars against two slow truths: a matcher of another kind says which texts match, and
// trying every token says what the mask should have been.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "text/grammar/compile.h"
#include "text/grammar/gbnf_parser.h"
#include "text/grammar/matcher.h"
#include "unit/text/grammar/random.h"
#include "unit/text/grammar/reference.h"

namespace sluice::text {
namespace {

using test::Dice;

// Null for the grammars that are refused: left recursion, or nothing matches.
std::shared_ptr<const Grammar> compile_or_null(const std::string& text) {
  try {
    grammar::RuleSet rules{GrammarLimits{}};
    const grammar::RuleId root = grammar::GbnfParser(text, rules).parse();
    return std::make_shared<const Grammar>(grammar::compile(rules, root));
  } catch (const Error&) {
    return nullptr;
  }
}

bool is_set(const std::vector<uint64_t>& bits, size_t token) {
  return (bits[token / 64] >> (token % 64) & 1) != 0;
}

// The number of tokens whose bit differs from what accept() does; the first is reported.
size_t n_wrong_bits(const GrammarMatcher& matcher, size_t n_tokens, std::vector<uint64_t>& bits) {
  matcher.fill_mask(bits);
  size_t n_wrong = 0;
  for (size_t t = 0; t < n_tokens; ++t) {
    GrammarMatcher copy = matcher;
    if (copy.accept(static_cast<TokenId>(t)) != is_set(bits, t)) {
      EXPECT_GT(n_wrong, 0u) << "token " << t << ": the mask says " << is_set(bits, t);
      ++n_wrong;
    }
  }
  return n_wrong;
}

struct MaskCounts {
  size_t n_masks = 0;
  size_t n_allowed = 0;
  size_t n_too_ambiguous = 0;
};

// A walk of random tokens, each mask compared on the way.
void compare_masks(uint64_t seed, const std::shared_ptr<const Grammar>& grammar, Dice& dice,
                   MaskCounts& counts) {
  const auto trie = std::make_shared<const TokenTrie>(test::random_vocabulary(dice, 150));
  // Every tenth forgets what it learned all the time.
  GrammarMatcher matcher(grammar, trie, {1}, seed % 10 == 0 ? 0 : 1 << 20);
  std::vector<uint64_t> bits((trie->n_tokens() + 63) / 64);
  for (int step = 0; step < 12; ++step) {
    ASSERT_EQ(n_wrong_bits(matcher, trie->n_tokens(), bits), 0u) << "step " << step;
    ++counts.n_masks;
    std::vector<TokenId> allowed;
    for (size_t t = 0; t < trie->n_tokens(); ++t) {
      if (is_set(bits, t)) allowed.push_back(static_cast<TokenId>(t));
    }
    counts.n_allowed += allowed.size();
    if (allowed.empty()) break;
    ASSERT_TRUE(matcher.accept(allowed[dice.roll(allowed.size())]));
  }
}

TEST(GrammarProperty, MasksEqualTryingEveryToken) {
  MaskCounts counts;
  size_t n_grammars = 0;
  for (uint64_t seed = 0; n_grammars < 400; ++seed) {
    Dice dice(seed);
    const std::string text = test::RandomGrammar(dice).text();
    const auto grammar = compile_or_null(text);
    if (!grammar) continue;
    ++n_grammars;
    SCOPED_TRACE(cat("seed ", seed, ", grammar:\n", text));
    try {
      compare_masks(seed, grammar, dice, counts);
    } catch (const Error&) {
      ++counts.n_too_ambiguous;
    }
    ASSERT_FALSE(HasFatalFailure());
  }
  // Empty masks would agree without showing anything.
  EXPECT_GT(counts.n_masks, 5 * n_grammars);
  EXPECT_GT(counts.n_allowed, 10 * counts.n_masks);
  EXPECT_LE(counts.n_too_ambiguous, n_grammars / 100);
}

TEST(GrammarProperty, TextsMatchAsTheReferenceSays) {
  size_t n_matches = 0, n_texts = 0, n_grammars = 0;
  for (uint64_t seed = 10000; n_grammars < 600; ++seed) {
    Dice dice(seed);
    const std::string text = test::RandomGrammar(dice).text();
    const auto grammar = compile_or_null(text);
    if (!grammar) continue;
    ++n_grammars;
    grammar::RuleSet rules{GrammarLimits{}};
    const grammar::RuleId root = grammar::GbnfParser(text, rules).parse();
    const auto trie = std::make_shared<const TokenTrie>(std::vector<std::string>{"a"});
    const GrammarMatcher start(grammar, trie, {});
    for (int i = 0; i < 60; ++i) {
      const std::string sample = test::random_text(dice, 8);
      const bool expected = test::ReferenceMatcher(rules, sample).matches(root);
      GrammarMatcher matcher = start;
      const bool got = matcher.accept_bytes(sample) && matcher.is_complete();
      ASSERT_EQ(got, expected) << "seed " << seed << ", text " << sample << ", grammar:\n" << text;
      ++n_texts;
      n_matches += expected ? 1 : 0;
    }
  }
  EXPECT_GT(n_matches, n_texts / 20);
  EXPECT_LT(n_matches, n_texts / 2);
}

}  // namespace
}  // namespace sluice::text
