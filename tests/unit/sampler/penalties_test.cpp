// Repetition, frequency and presence penalties, and the windows they look at.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/penalties.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "sampler/sampler.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

TokenCounts count(std::initializer_list<TokenId> tokens, size_t n_vocab) {
  TokenCounts counts(n_vocab);
  for (const TokenId id : tokens) counts.add(id);
  return counts;
}

TEST(Penalties, FollowTheirFormula) {
  Candidates c = load(std::vector<float>{2.0f, -2.0f, 0.0f, 1.0f, -kInf});
  penalise(c, count({0, 1, 1, 2, 4}, 5), {.repeat = 2.0f, .frequency = 0.25f, .presence = 0.5f});
  EXPECT_EQ(c.logits()[0], 1.0f - 0.25f - 0.5f) << "above 0 it divides";
  EXPECT_EQ(c.logits()[1], -4.0f - 2 * 0.25f - 0.5f) << "below 0 it multiplies; two occurrences";
  EXPECT_EQ(c.logits()[2], -0.25f - 0.5f);
  EXPECT_EQ(c.logits()[3], 1.0f) << "did not occur";
  EXPECT_EQ(c.logits()[4], -kInf);
}

TEST(Penalties, MayRewardAndStayFinite) {
  Candidates c = load(std::vector<float>{3e38f, -3e38f, 1.0f});
  penalise(c, count({0, 1, 2, 2}, 3), {.repeat = 1e-3f, .frequency = -1.0f});
  EXPECT_EQ(c.logits()[0], std::numeric_limits<float>::max());
  EXPECT_FLOAT_EQ(c.logits()[1], -3e35f);
  EXPECT_FLOAT_EQ(c.logits()[2], 1002.0f);
}

TEST(Penalties, ReachOnlyWhatIsStillInTheRace) {
  Candidates c = load(std::vector<float>{1, 2, 3, 4});
  c.keep_best(2);
  penalise(c, count({0, 3}, 4), {.presence = 2.5f});
  EXPECT_EQ(c.logits()[0], 3.0f);
  EXPECT_EQ(c.logits()[1], 1.5f);
}

TEST(TokenCounts, CountAsAMapDoes) {
  TokenCounts counts(20);
  std::map<TokenId, int> expected;
  std::deque<TokenId> tokens;
  for (uint64_t i = 0; i < 2000; ++i) {
    if (tokens.size() > 30 || (!tokens.empty() && random_bits(1, i) % 3 == 0)) {
      counts.remove(tokens.front());
      if (--expected[tokens.front()] == 0) expected.erase(tokens.front());
      tokens.pop_front();
    } else {
      tokens.push_back(static_cast<TokenId>(random_bits(2, i) % 20));
      counts.add(tokens.back());
      ++expected[tokens.back()];
    }
    std::map<TokenId, int> got;
    for (const auto& [id, n] : counts.entries()) got[id] = n;
    ASSERT_EQ(got, expected) << "after " << i;
  }
  counts.clear();
  EXPECT_TRUE(counts.entries().empty());
  counts.add(7);
  EXPECT_EQ(counts.entries()[0].n, 1) << "nothing was left behind";
}

TEST(History, RemembersTheLastFew) {
  for (const size_t capacity : {size_t{0}, size_t{1}, size_t{5}, kWholeContext}) {
    History history(capacity);
    std::deque<TokenId> expected;
    for (TokenId id = 0; id < 40; ++id) {
      history.push(id);
      expected.push_front(id);
      if (expected.size() > capacity) expected.pop_back();
      ASSERT_EQ(history.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_EQ(history.recent(i), expected[i]) << capacity << ", " << i << " of " << id;
      }
    }
    history.clear();
    EXPECT_EQ(history.size(), 0u);
  }
}

// Through the sampler: which tokens of a text are penalised, for every window.
TEST(Penalties, CoverTheLastTokensOfTheText) {
  constexpr int kVocab = 50;
  std::vector<TokenId> text;
  for (uint64_t i = 0; i < 200; ++i) text.push_back(static_cast<TokenId>(random_bits(3, i) % 50));
  const std::vector<float> logits(kVocab, 1.0f);
  for (const int last_n : {-1, 0, 1, 2, 64, 500}) {
    SamplerOptions options = {.frequency_penalty = 0.5f, .repeat_last_n = last_n, .seed = 1};
    options.stages = parse_stage_letters("e");
    Sampler sampler(options, kVocab);
    for (size_t n = 0; n < text.size(); ++n) {
      sampler.accept(text[n]);
      if (n % 10 != 3) continue;
      sampler.sample(logits);
      std::vector<int> counts(kVocab);
      const size_t window = last_n < 0 ? text.size() : static_cast<size_t>(last_n);
      for (size_t i = 0; i <= n && i < window; ++i) ++counts[static_cast<size_t>(text[n - i])];
      for (const Candidate& c : sampler.candidates()) {
        ASSERT_EQ(c.logit, 1.0f - 0.5f * static_cast<float>(counts[static_cast<size_t>(c.id)]))
            << "token " << c.id << ", last_n " << last_n << ", after " << n;
      }
    }
  }
}

}  // namespace
}  // namespace sluice::sampler::test
