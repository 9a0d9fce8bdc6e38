// Mirostat: where it cuts, how it learns, and that the text's surprise comes out as asked.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/mirostat.h"

#include <gtest/gtest.h>

#include "sampler/sampler.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Ids = std::set<size_t>;

TEST(Mirostat, LearnsByItsFormula) {
  Mirostat m(2, 3.0, 0.1);
  EXPECT_DOUBLE_EQ(m.mu(), 6.0);
  m.observe(1.0 / 32.0);  // 5 bits: 2 too many
  EXPECT_DOUBLE_EQ(m.mu(), 6.0 - 0.1 * 2.0);
  m.observe(1.0);
  EXPECT_DOUBLE_EQ(m.mu(), 5.8 + 0.1 * 3.0);
  m.reset();
  EXPECT_DOUBLE_EQ(m.mu(), 6.0);
}

TEST(Mirostat2, CutsAtTheSurpriseMu) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<float> logits = make_logits(shape, n, 8);
      const std::vector<double> p = softmax(logits);
      const size_t best = ranked(logits)[0];
      for (const double tau : {0.0, 0.7, 2.0, 4.0}) {
        const double mu = 2.0 * tau;
        const Mirostat m(2, tau, 0.1);
        const Ids got = kept(logits, [&](Candidates& c) { m.truncate(c, n); });
        for (size_t i = 0; i < n; ++i) {
          const double surprise = -std::log2(p[i]);
          if (std::abs(surprise - mu) < 1e-4) continue;  // weights are within 1e-5
          ASSERT_EQ(got.contains(i), surprise <= mu || i == best)
              << describe(shape, n) << ", mu " << mu << ", token " << i << " with " << surprise;
        }
      }
    }
  }
}

TEST(Mirostat2, LeavesTheBestWhereAllSurpriseTooMuch) {
  const Mirostat m(2, 0.5, 0.1);  // mu 1: nothing below 1/2
  EXPECT_EQ(kept(std::vector<float>{1, 1, 1, 1}, [&](Candidates& c) { m.truncate(c, 4); }),
            (Ids{0}));
}

// On p_i ~ i^-s the fit is exact, and so is k.
TEST(Mirostat1, TakesKFromTheZipfFit) {
  constexpr size_t kN = 3000;
  for (const double s : {0.6, 1.0, 1.3, 2.0}) {
    std::vector<float> logits(kN);
    for (size_t i = 0; i < kN; ++i) {
      logits[i] = static_cast<float>(-s * std::log(static_cast<double>(i + 1)));
    }
    for (const double tau : {1.0, 2.0, 4.0}) {
      const double e = s - 1.0;
      const double fraction =
          e == 0.0 ? 1.0 / std::log(kN) : e / (1.0 - std::pow(static_cast<double>(kN), -e));
      const double k =
          std::clamp(std::pow(fraction * std::exp2(2.0 * tau), 1.0 / s), 1.0, double{kN});
      const Mirostat m(1, tau, 0.1);
      const size_t got = kept(logits, [&](Candidates& c) { m.truncate(c, kN); }).size();
      // Logits are rounded to floats, so k is off by a little, and then cut to a whole number.
      EXPECT_NEAR(static_cast<double>(got), k, 1.0 + k * 1e-4) << "s " << s << ", tau " << tau;
    }
  }
}

TEST(Mirostat1, TakesWhatHasNoFit) {
  const Mirostat m(1, 3.0, 0.1);
  const auto n_left = [&](const std::vector<float>& logits) {
    return kept(logits, [&](Candidates& c) { m.truncate(c, logits.size()); }).size();
  };
  EXPECT_EQ(n_left({1.0f}), 1u);
  EXPECT_EQ(n_left({1.0f, -kInf}), 2u) << "nothing to do";
  EXPECT_EQ(n_left(std::vector<float>(10, 1.0f)), 10u) << "s = 0 and 2^6 > 9";
  EXPECT_EQ(n_left(std::vector<float>(1000, 1.0f)), 1u) << "s = 0 and 2^6 < 999";
  EXPECT_EQ(n_left({3e38f, -3e38f, 0.0f}), 1u);
}

// mu moves by eta (tau - S) a token, so the mean of S is off tau by what mu moved in all, divided
// by eta times the tokens.
TEST(Mirostat, TheMeanSurpriseComesOutAsAsked) {
  constexpr int kN = 500;
  constexpr int kTokens = 2000;
  std::vector<float> logits(kN);
  for (const int version : {1, 2}) {
    for (const float tau : {2.0f, 4.0f, 6.0f}) {
      SamplerOptions options = {.temp = 1.0f, .mirostat = version, .mirostat_tau = tau};
      options.seed = 7;
      Sampler sampler(options, kN);
      double surprise = 0.0;
      for (uint64_t step = 0; step < kTokens; ++step) {
        for (uint64_t i = 0; i < kN; ++i) {  // about 8 bits of entropy before the cut
          logits[i] = 1.3f * random_signed(random_bits(step, i)) -
                      0.7f * std::log(static_cast<float>((i * 7 + step) % kN + 1));
        }
        const TokenId id = sampler.sample(logits);
        for (const Candidate& c : sampler.candidates()) {
          if (c.id == id) surprise -= std::log2(c.p);
        }
        sampler.accept(id);
      }
      // mu stays between 0 and 20, and starts at 2 tau.
      EXPECT_NEAR(surprise / kTokens, tau, 20.0 / (0.1 * kTokens)) << "mirostat " << version;
    }
  }
}

TEST(Mirostat, LearnsOnlyFromTokensItDrew) {
  const std::vector<float> logits = make_logits(Shape::smooth, 100, 9);
  const SamplerOptions options = {.temp = 1.0f, .mirostat = 2, .mirostat_tau = 3.0f, .seed = 1};
  const auto n_after = [&](auto&& step) {
    Sampler sampler(options, 100);
    for (int i = 0; i < 50; ++i) step(sampler, i);
    sampler.sample(logits);
    return sampler.candidates().size();
  };
  const size_t fresh = n_after([](Sampler&, int) {});
  EXPECT_EQ(n_after([](Sampler& s, int i) { s.accept(i); }), fresh) << "a prompt";
  EXPECT_EQ(n_after([&](Sampler& s, int) { s.sample(logits); }), fresh) << "drawn, not accepted";
  const size_t learned = n_after([&](Sampler& s, int) { s.accept(s.sample(logits)); });
  EXPECT_NE(learned, fresh);
  const auto twice = [&](Sampler& s, int) {
    const TokenId id = s.sample(logits);
    s.accept(id);
    s.accept(id);
  };
  EXPECT_EQ(n_after(twice), learned) << "the second was forced on it";
  EXPECT_EQ(n_after([&](Sampler& s, int i) {
              s.accept(s.sample(logits));
              if (i == 49) s.reset();
            }),
            fresh)
      << "forgotten";
}

// A grammar may force such a token on it. Its surprise would be infinite, and mu with it.
TEST(Mirostat, LearnsNothingFromATokenWhoseProbabilityIsZeroAsAFloat) {
  const std::vector<float> logits = {0.0f, -200.0f};
  Sampler sampler({.temp = 1.0f, .mirostat = 2, .mirostat_tau = 1000.0f, .seed = 1}, 2);
  sampler.sample(logits);
  ASSERT_EQ(sampler.candidates().size(), 2u);
  ASSERT_EQ(sampler.candidates()[1].p, 0.0f);
  sampler.accept(1);
  sampler.sample(logits);
  EXPECT_EQ(sampler.candidates().size(), 2u);
}

}  // namespace
}  // namespace sluice::sampler::test
