// DRY and the penalties look back over windows of their own, of any two lengths, in one text that
// the sampler keeps for both.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "sampler/sampler.h"

namespace sluice::sampler::test {
namespace {

constexpr int kVocab = 6;

// Powers of 2 and small counts: sums of what both take are exact.
Sampler make_sampler(const char* stages, int repeat_last_n, int dry_last_n) {
  SamplerOptions options;
  options.temp = 1.0f;
  options.seed = 1;
  options.stages = parse_stage_letters(stages);
  options.frequency_penalty = 0.25f;
  options.repeat_last_n = repeat_last_n;
  options.dry_multiplier = 0.5f;
  options.dry_base = 2.0f;
  options.dry_last_n = dry_last_n;
  return {options, kVocab};
}

// What the stages take from each token's logit.
std::vector<float> taken(Sampler& sampler) {
  sampler.sample(std::vector<float>(kVocab, 0.0f));
  std::vector<float> all;
  for (const Candidate& c : sampler.candidates()) all.push_back(-c.logit);
  return all;
}

// A text that repeats itself: one of three tokens, in phrases.
TokenId token_at(uint64_t seed, uint64_t i) {
  return static_cast<TokenId>(random_bits(seed, i % 7 + 7 * (i / 21)) % 3);
}

// Each stage alone keeps its own window and no more; its own tests hold it against its definition.
TEST(Windows, OfDryAndPenaltiesDoNotTouchEachOther) {
  constexpr int kWindows[] = {-1, 0, 1, 2, 5, 16, 64};
  int n_dry = 0, n_penalties = 0;
  for (const int repeat_last_n : kWindows) {
    for (const int dry_last_n : kWindows) {
      Sampler both = make_sampler("ed", repeat_last_n, dry_last_n);
      Sampler reversed = make_sampler("de", repeat_last_n, dry_last_n);
      Sampler penalties = make_sampler("e", repeat_last_n, 0);
      Sampler dry = make_sampler("d", 0, dry_last_n);
      for (uint64_t i = 0; i < 100; ++i) {
        for (Sampler* sampler : {&both, &reversed, &penalties, &dry}) {
          sampler->accept(token_at(4, i));
        }
        const std::vector<float> all = taken(both), by_count = taken(penalties),
                                 by_repetition = taken(dry);
        ASSERT_EQ(taken(reversed), all) << "both only subtract, so their order does not matter";
        for (size_t id = 0; id < kVocab; ++id) {
          ASSERT_EQ(all[id], by_count[id] + by_repetition[id])
              << "token " << id << " after " << i + 1 << ", repeat_last_n " << repeat_last_n
              << ", dry_last_n " << dry_last_n;
          n_penalties += by_count[id] > 0.0f;
          n_dry += by_repetition[id] > 0.0f;
        }
      }
    }
  }
  EXPECT_GT(n_penalties, 1000);
  EXPECT_GT(n_dry, 1000);
}

// A step that throws has drawn nothing and remembers nothing: the next one is as if it had not
// been.
TEST(Windows, AFailedSampleLeavesTextAndSeedAsTheyWere) {
  Sampler failed = make_sampler("ed", 5, 16), plain = make_sampler("ed", 5, 16);
  const uint64_t none = 0;
  const TokenMask mask{{&none, 1}};
  const std::vector<float> flat(kVocab, 0.0f);
  std::vector<float> unsound(kVocab, 0.0f);
  unsound[2] = std::numeric_limits<float>::quiet_NaN();
  for (int i = 0; i < 40; ++i) {
    EXPECT_THROW(failed.sample(flat, &mask), Error);
    EXPECT_THROW(failed.sample(unsound), Error);
    const TokenId id = plain.sample(flat);
    ASSERT_EQ(failed.sample(flat), id) << i;
    failed.accept(id);
    plain.accept(id);
  }
}

}  // namespace
}  // namespace sluice::sampler::test
