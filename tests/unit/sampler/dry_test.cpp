// DRY: examples worked by hand, then every text against the definition, token by token.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/dry.h"

#include <gtest/gtest.h>

#include <map>

#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Tokens = std::vector<TokenId>;
using Lengths = std::map<TokenId, size_t>;  // token -> length of the repetition it would continue

constexpr TokenId kDryVocab = 12;

// multiplier 1 and base 2 make penalties that are exact powers of 2.
Lengths lengths(const Tokens& text, DryOptions options) {
  options.multiplier = 1.0f;
  options.base = 2.0f;
  History history(options.last_n);
  for (const TokenId id : text) history.push(id);
  Candidates c = load(std::vector<float>(kDryVocab, 0.0f));
  Dry dry(options, kDryVocab);
  dry.penalise(c, history);
  Lengths found;
  for (size_t id = 0; id < c.size(); ++id) {
    if (c.logits()[id] == 0.0f) continue;
    found[static_cast<TokenId>(id)] = static_cast<size_t>(options.allowed_length) +
                                      static_cast<size_t>(std::log2(-c.logits()[id]));
  }
  return found;
}

TEST(Dry, PenalisesWhatContinuesARepetition) {
  // a b c c b c y a b c: after "a b c" came c, after "b c" y, after "c" b and c.
  const Tokens text = {0, 1, 2, 2, 1, 2, 9, 0, 1, 2};
  EXPECT_EQ(lengths(text, {.allowed_length = 1}), (Lengths{{1, 1}, {2, 3}, {9, 2}}));
  EXPECT_EQ(lengths(text, {.allowed_length = 2}), (Lengths{{2, 3}, {9, 2}}));
  EXPECT_EQ(lengths(text, {.allowed_length = 3}), (Lengths{{2, 3}}));
  EXPECT_EQ(lengths(text, {.allowed_length = 4}), (Lengths{}));
}

TEST(Dry, SeesOverlappingRepetitions) {
  EXPECT_EQ(lengths({5, 5, 5, 5, 5}, {.allowed_length = 2}), (Lengths{{5, 4}}));
  EXPECT_EQ(lengths({1, 2, 1, 2, 1}, {.allowed_length = 2}), (Lengths{{2, 3}}));
  EXPECT_EQ(lengths({1, 2, 3, 1, 2, 3, 1, 2}, {.allowed_length = 2}), (Lengths{{3, 5}}));
}

TEST(Dry, LooksNoFurtherBackThanItsWindow) {
  const Tokens text = {1, 2, 3, 7, 8, 9, 1, 2};
  EXPECT_EQ(lengths(text, {.last_n = 64}), (Lengths{{3, 2}}));
  EXPECT_EQ(lengths(text, {.last_n = kWholeContext}), (Lengths{{3, 2}}));
  EXPECT_EQ(lengths(text, {.last_n = 8}), (Lengths{{3, 2}}));
  EXPECT_EQ(lengths(text, {.last_n = 7}), (Lengths{})) << "the window begins at the 2";
  EXPECT_EQ(lengths(text, {.last_n = 1}), (Lengths{}));
}

TEST(Dry, DoesNotMatchAcrossABreaker) {
  const Tokens text = {1, 2, 3, 4, 1, 2, 3};
  EXPECT_EQ(lengths(text, {.breakers = {}}), (Lengths{{4, 3}}));
  EXPECT_EQ(lengths(text, {.breakers = {{1}}}), (Lengths{{4, 2}}));
  EXPECT_EQ(lengths(text, {.breakers = {{2}}}), (Lengths{})) << "one token after the breaker";
  EXPECT_EQ(lengths(text, {.breakers = {{3}}}), (Lengths{})) << "the text ends with one";
  EXPECT_EQ(lengths(text, {.breakers = {{7}, {8}}}), (Lengths{{4, 3}}));
  EXPECT_EQ(lengths(text, {.breakers = {{4}}}), (Lengths{})) << "a breaker is not penalised";
}

TEST(Dry, ABreakerOfSeveralTokensBreaksAtItsEnd) {
  const Tokens text = {5, 1, 2, 3, 4, 5, 1, 2, 3};
  EXPECT_EQ(lengths(text, {.breakers = {{5, 1}}}), (Lengths{{4, 2}}));
  EXPECT_EQ(lengths(text, {.breakers = {{5, 1, 2}}}), (Lengths{}));
  EXPECT_EQ(lengths(text, {.breakers = {{1, 5}}}), (Lengths{{4, 4}})) << "not in this order";
  EXPECT_EQ(lengths(text, {.breakers = {{5, 1}, {1, 2}}}), (Lengths{})) << "the latest counts";
  EXPECT_EQ(lengths({1, 2}, {.breakers = {{9, 1, 2}}}), (Lengths{})) << "longer than the text";
  EXPECT_EQ(lengths({4, 1, 2, 3, 4, 1, 2}, {.breakers = {{3, 9}}}), (Lengths{{3, 3}}))
      << "the head of a longer breaker alone is a token like others";
}

TEST(Dry, FollowsItsFormula) {
  // A phrase three times, followed by 9 and then by 10: both continue it.
  const auto penalty = [](const DryOptions& options, size_t n_repeated) {
    History history(1000);
    for (const TokenId next : {9, 10, -1}) {
      for (size_t i = 0; i < n_repeated; ++i) history.push(static_cast<TokenId>(1 + i % 4));
      if (next >= 0) history.push(next);
    }
    Candidates c = load(std::vector<float>(kDryVocab, 0.5f));
    Dry(options, kDryVocab).penalise(c, history);
    EXPECT_EQ(c.logits()[9], c.logits()[10]) << "both followed";
    return 0.5 - c.logits()[9];
  };
  EXPECT_EQ(penalty({.multiplier = 0.8f}, 1), 0.0);
  EXPECT_NEAR(penalty({.multiplier = 0.8f}, 2), 0.8, 1e-6);
  EXPECT_NEAR(penalty({.multiplier = 0.8f}, 3), 0.8 * 1.75, 1e-6);
  EXPECT_NEAR(penalty({.multiplier = 0.8f}, 7), 0.8 * std::pow(1.75, 5), 1e-5);
  EXPECT_NEAR(penalty({.multiplier = 2, .base = 1, .allowed_length = 3}, 7), 2.0, 1e-6);
  EXPECT_EQ(penalty({.multiplier = 1, .base = 100, .last_n = 1000}, 300),
            static_cast<double>(std::numeric_limits<float>::max()) + 0.5)
      << "finite, however long";
}

TEST(Dry, LeavesNothingBehindForTheNextToken) {
  Dry dry({.multiplier = 1.0f, .base = 2.0f}, kDryVocab);
  History history(64);
  for (const TokenId id : {1, 2, 3, 1, 2}) history.push(id);
  for (int i = 0; i < 2; ++i) {
    Candidates c = load(std::vector<float>(kDryVocab, 0.0f));
    dry.penalise(c, history);
    EXPECT_EQ(c.logits()[3], -1.0f) << i;
  }
  history.push(7);
  Candidates c = load(std::vector<float>(kDryVocab, 0.0f));
  dry.penalise(c, history);
  EXPECT_EQ(c.logits()[3], 0.0f);
}

// The definition: for each earlier place, count how far back the text agrees with its end.
Lengths by_definition(Tokens text, const DryOptions& o) {
  if (text.size() > o.last_n) text.erase(text.begin(), text.end() - static_cast<int>(o.last_n));
  const size_t n = text.size();
  const auto breaker_ends = [&](size_t last) {
    return std::ranges::any_of(o.breakers, [&](const Tokens& b) {
      return b.size() <= last + 1 &&
             std::equal(b.rbegin(), b.rend(), text.rbegin() + static_cast<int>(n - 1 - last));
    });
  };
  size_t limit = 0;
  while (limit < n && !breaker_ends(n - 1 - limit)) ++limit;
  Lengths found;
  for (size_t next = 1; next < n; ++next) {
    size_t length = 0;
    while (length < std::min(next, limit) && text[next - 1 - length] == text[n - 1 - length]) {
      ++length;
    }
    if (length < static_cast<size_t>(o.allowed_length)) continue;
    if (std::ranges::find(o.breakers, Tokens{text[next]}) != o.breakers.end()) continue;
    found[text[next]] = std::max(found[text[next]], length);
  }
  return found;
}

TEST(Dry, AgreesWithItsDefinitionOnRandomTexts) {
  size_t n_found = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    const auto draw = [&](uint64_t i, uint64_t n) { return random_bits(seed, i) % n; };
    const uint64_t n_letters = 1 + draw(0, 4);
    Tokens text(draw(1, 40));
    for (size_t i = 0; i < text.size(); ++i) {
      text[i] = static_cast<TokenId>(draw(100 + i, n_letters));
    }
    DryOptions o{.allowed_length = static_cast<int>(draw(2, 4)),
                 .last_n = draw(3, 3) == 0 ? draw(4, 30) : kWholeContext};
    for (uint64_t b = 0; b < draw(5, 3); ++b) {
      o.breakers.emplace_back(1 + draw(6 + b, 3));
      for (size_t i = 0; i < o.breakers.back().size(); ++i) {
        o.breakers.back()[i] = static_cast<TokenId>(draw(20 + 5 * b + i, n_letters + 1));
      }
    }
    const Lengths expected = by_definition(text, o);
    n_found += expected.size();
    ASSERT_EQ(lengths(text, o), expected)
        << "seed " << seed << ", text " << testing::PrintToString(text) << ", breakers "
        << testing::PrintToString(o.breakers);
  }
  EXPECT_GT(n_found, 1000u) << "the texts repeat nothing";
}

}  // namespace
}  // namespace sluice::sampler::test
