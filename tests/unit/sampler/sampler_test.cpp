// The sampler as a whole: what may be drawn, what the order of stages changes, and that a seed
// fixes everything. How often what is drawn is in distribution_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/sampler.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "sampler/greedy.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Ids = std::set<size_t>;

// Nothing but the draw, unless more is said.
SamplerOptions plain(const char* stages = "") {
  return {.temp = 1.0f, .seed = 42, .stages = parse_stage_letters(stages)};
}

Ids ids_left(const Sampler& sampler) {
  Ids ids;
  for (const Candidate& c : sampler.candidates()) ids.insert(static_cast<size_t>(c.id));
  return ids;
}

Ids candidates_of(const SamplerOptions& options, const std::vector<float>& logits) {
  Sampler sampler(options, static_cast<int>(logits.size()));
  sampler.sample(logits);
  return ids_left(sampler);
}

std::vector<TokenId> draw(Sampler& sampler, const std::vector<float>& logits, int n) {
  std::vector<TokenId> tokens;
  for (int i = 0; i < n; ++i) {
    tokens.push_back(sampler.sample(logits));
    sampler.accept(tokens.back());
  }
  return tokens;
}

TEST(Sampler, TheSeedFixesTheText) {
  const std::vector<float> logits = make_logits(Shape::smooth, 500, 1);
  SamplerOptions options = {.repeat_penalty = 1.2f, .dry_multiplier = 0.5f, .seed = 1};
  options.xtc_probability = 0.5f;
  options.xtc_threshold = 0.01f;
  Sampler a(options, 500), b(options, 500);
  const std::vector<TokenId> text = draw(a, logits, 100);
  EXPECT_EQ(draw(b, logits, 100), text);
  EXPECT_NE(draw(b, logits, 100), text) << "it goes on";
  b.reset();
  EXPECT_EQ(draw(b, logits, 100), text) << "as new";
  Sampler copy = a;
  EXPECT_EQ(draw(copy, logits, 50), draw(a, logits, 50));
  options.seed = 2;
  Sampler other(options, 500);
  EXPECT_NE(draw(other, logits, 100), text);
}

// So that results are the same everywhere: the first numbers of mt19937(5489) are 3499211612 and
// 581869302, by its specification.
TEST(Sampler, DrawsTheNumbersThatTheGeneratorIsDefinedBy) {
  Uniform uniform(5489);
  EXPECT_EQ(uniform(), ((3499211612u >> 5) * 67108864.0 + (581869302u >> 6)) / 9007199254740992.0);
  // 0.8147...: of ten equal tokens the ninth, whatever the standard library.
  SamplerOptions options = plain();
  options.seed = 5489;
  Sampler sampler(options, 10);
  EXPECT_EQ(sampler.sample(std::vector<float>(10, 1.0f)), 8);
}

// One number a token, whatever the chain leaves, so that the stages do not shift the stream.
TEST(Sampler, UsesOneNumberForEachToken) {
  const std::vector<float> flat(10, 1.0f);
  const std::vector<float> sure = {0, 90, 0, 0, 0, 0, 0, 0, 0, 0};
  Sampler a(plain(), 10), b(plain(), 10);
  a.sample(flat);
  b.sample(sure);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(a.sample(flat), b.sample(flat)) << i;
  SamplerOptions options = plain("x");
  options.xtc_probability = 0.5f;
  options.xtc_threshold = 0.5f;  // one token of ten is never above it
  Sampler c(plain(), 10), d(options, 10);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(c.sample(flat), d.sample(flat)) << i;
}

TEST(Sampler, ShowsWhatItDrewFrom) {
  const std::vector<float> logits = {0.0f, 2.0f, 1.0f, -kInf, 2.0f};
  SamplerOptions options = plain("kt");
  options.top_k = 3;
  options.temp = 0.5f;
  Sampler sampler(options, 5);
  const TokenId id = sampler.sample(logits);
  ASSERT_EQ(ids_left(sampler), (Ids{1, 2, 4}));
  EXPECT_TRUE(ids_left(sampler).contains(static_cast<size_t>(id)));
  const double z = 2.0 + std::exp(-2.0);
  EXPECT_NEAR(sampler.candidates()[0].p, 1.0 / z, 1e-6);
  EXPECT_NEAR(sampler.candidates()[1].p, std::exp(-2.0) / z, 1e-6);
  EXPECT_EQ(sampler.candidates()[0].logit, 4.0f);
  const std::vector<Candidate> best = sampler.best_candidates(2);
  ASSERT_EQ(best.size(), 2u);
  EXPECT_EQ(best[0].id, 1) << "of equal ones the lower id";
  EXPECT_EQ(best[1].id, 4);
  EXPECT_EQ(sampler.best_candidates(9).size(), 3u);
  EXPECT_EQ(sampler.best_candidates(9)[2].id, 2);
}

TEST(Sampler, TheOrderOfStagesMatters) {
  // Of 0.4, 0.3, 0.2, 0.1: two reach 0.55, but of the best two alone the first does.
  std::vector<float> logits;
  for (const double p : {0.4, 0.3, 0.2, 0.1}) logits.push_back(static_cast<float>(std::log(p)));
  SamplerOptions options = plain();
  options.top_k = 2;
  options.top_p = 0.55f;
  const auto with = [&](const char* stages) {
    options.stages = parse_stage_letters(stages);
    return candidates_of(options, logits);
  };
  EXPECT_EQ(with("kp"), (Ids{0}));
  EXPECT_EQ(with("pk"), (Ids{0, 1}));
  // Temperature flattens before min-p, or after it.
  options.min_p = 0.6f;
  options.temp = 4.0f;
  EXPECT_EQ(with("mt"), (Ids{0, 1}));
  EXPECT_EQ(with("tm"), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(with(""), (Ids{0, 1, 2, 3}));
}

TEST(Sampler, PenaltiesMayComeBeforeOrAfterTruncation) {
  const std::vector<float> logits = {5, 4, 3, 2};
  SamplerOptions options = plain("ek");
  options.top_k = 2;
  options.presence_penalty = 10.0f;
  const auto after_zero = [&](const char* stages) {
    options.stages = parse_stage_letters(stages);
    Sampler sampler(options, 4);
    sampler.accept(0);
    sampler.sample(logits);
    return ids_left(sampler);
  };
  EXPECT_EQ(after_zero("ek"), (Ids{1, 2}));
  EXPECT_EQ(after_zero("ke"), (Ids{0, 1}));
}

TEST(Sampler, ForbiddenTokensAreNeverDrawn) {
  const std::vector<float> logits = {50, 40, 30, 20, 1, 1, 1, 1};
  SamplerOptions options = {.temp = 5.0f, .seed = 3};
  options.logit_bias = {{0, -kInf}, {0, 100.0f}, {4, 2.0f}, {4, 1.0f}};
  options.suppressed = {1};
  options.end_of_generation = {2};
  for (const bool ignore_eos : {true, false}) {
    options.ignore_eos = ignore_eos;
    for (const float temp : {0.0f, 5.0f}) {
      options.temp = temp;
      for (const int mirostat : {0, 1, 2}) {
        options.mirostat = mirostat;
        Sampler sampler(options, 8);
        for (int i = 0; i < 50; ++i) {
          const TokenId id = sampler.sample(logits);
          EXPECT_NE(id, 0);
          EXPECT_NE(id, 1);
          EXPECT_TRUE(!ignore_eos || id != 2);
          EXPECT_TRUE(ignore_eos || temp > 0.0f || id == 2) << "the best that is allowed";
        }
      }
    }
  }
  SamplerOptions biased = plain();
  biased.logit_bias = options.logit_bias;
  Sampler sampler(biased, 8);
  sampler.sample(logits);
  EXPECT_EQ(sampler.candidates()[3].id, 4);
  EXPECT_EQ(sampler.candidates()[3].logit, 4.0f) << "1 + 2 + 1";
}

TEST(Sampler, StaysWithinTheMask) {
  const std::vector<float> logits = make_logits(Shape::smooth, 100, 2);
  for (const float temp : {0.0f, 1.0f}) {
    SamplerOptions options = {.temp = temp, .seed = 1};
    Sampler sampler(options, 100);
    std::vector<uint64_t> words = {0, 0};
    const TokenMask mask{words};
    words[1] = (uint64_t{1} << (70 - 64)) | (uint64_t{1} << (99 - 64));
    for (int i = 0; i < 50; ++i) {
      const TokenId id = sampler.sample(logits, &mask);
      EXPECT_TRUE(id == 70 || id == 99) << id;
    }
    words[1] = uint64_t{1} << (99 - 64);
    EXPECT_EQ(sampler.sample(logits, &mask), 99) << "one alone";
    EXPECT_EQ(sampler.candidates().size(), 1u);
    EXPECT_EQ(sampler.candidates()[0].p, 1.0f);
  }
}

std::string error_of(Sampler& sampler, const std::vector<float>& logits, const TokenMask* mask,
                     Errc expected) {
  try {
    sampler.sample(logits, mask);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), expected) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(Sampler, SaysWhenNoTokenIsLeft) {
  SamplerOptions options = plain();
  options.suppressed = {0, 1};
  Sampler sampler(options, 3);
  const uint64_t none = 0, two = 3, bits_past_the_end = ~uint64_t{7};
  for (const uint64_t* words : {&none, &two, &bits_past_the_end}) {
    const TokenMask mask{{words, 1}};
    EXPECT_EQ(error_of(sampler, {1, 2, 3}, &mask, Errc::bad_request),
              "no token may follow: the grammar, logit bias, suppressed tokens and ignore_eos rule "
              "out all 3; expected one at least");
  }
  EXPECT_EQ(error_of(sampler, {1, 2, -kInf}, nullptr, Errc::bad_request),
            "no token may follow: logit bias, suppressed tokens and ignore_eos rule out all 3; "
            "expected one at least");
  EXPECT_EQ(sampler.sample(std::vector<float>{1, 2, 3}), 2) << "and lives on";
}

TEST(Sampler, SaysWhenTheModelComputesNoNumbers) {
  Sampler sampler(plain(), 3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(error_of(sampler, {1, nan, nan}, nullptr, Errc::bad_file),
            "the model computed nan as the logit of token 1 (2 of 3 are unsound); expected "
            "numbers; check the model file");
  EXPECT_EQ(error_of(sampler, {1, 2, kInf}, nullptr, Errc::bad_file),
            "the model computed inf as the logit of token 2 (1 of 3 are unsound); expected "
            "numbers; check the model file");
  EXPECT_EQ(error_of(sampler, {-kInf, -kInf, -kInf}, nullptr, Errc::bad_file),
            "the model computed -inf as the logit of all 3 tokens; expected numbers; check the "
            "model file");
  const uint64_t first = 1;
  const TokenMask mask{{&first, 1}};
  EXPECT_NE(error_of(sampler, {1, nan, 1}, &mask, Errc::bad_file), "no error") << "masked, too";
}

TEST(Sampler, AVocabularyOfOneIsEnough) {
  for (const int mirostat : {0, 1, 2}) {
    SamplerOptions options = {.typical_p = 0.5f, .top_n_sigma = 1.0f, .mirostat = mirostat};
    options.dynatemp_range = 0.5f;
    options.xtc_probability = 1.0f;
    options.dry_multiplier = 1.0f;
    options.repeat_penalty = 1.5f;
    options.seed = 1;
    Sampler sampler(options, 1);
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(sampler.sample(std::vector<float>{-3.0f}), 0);
      sampler.accept(0);
    }
  }
}

TEST(Sampler, TakesTheBestAfterBiasAndPenaltiesAtTemperatureZero) {
  for (const Shape shape : kShapes) {
    const size_t n = 300;
    const std::vector<float> logits = make_logits(shape, n, 3);
    SamplerOptions options = {.temp = 0.0f, .repeat_penalty = 1.3f, .presence_penalty = 0.5f};
    options.typical_p = 0.3f;  // none of these has a say
    options.xtc_probability = 1.0f;
    options.dynatemp_range = 2.0f;
    options.logit_bias = {{5, 1.5f}, {6, -kInf}};
    options.seed = 1;
    Sampler sampler(options, static_cast<int>(n));
    std::vector<TokenId> text;
    for (int step = 0; step < 20; ++step) {
      std::vector<float> changed = logits;
      if (changed[5] > -kInf) {
        changed[5] = static_cast<float>(std::min(changed[5] + 1.5, 3.4028234663852886e38));
      }
      changed[6] = -kInf;
      for (const size_t id : std::set<size_t>(text.begin(), text.end())) {
        const double l = changed[id] > 0 ? changed[id] / 1.3f : changed[id] * 1.3f;
        changed[id] = static_cast<float>(std::max(l - 0.5, -3.4028234663852886e38));
      }
      const TokenId id = sampler.sample(logits);
      ASSERT_EQ(id, greedy(changed)) << describe(shape, n) << ", step " << step;
      ASSERT_EQ(sampler.candidates().size(), 1u);
      EXPECT_EQ(sampler.candidates()[0].p, 1.0f);
      sampler.accept(id);
      text.push_back(id);
    }
  }
}

TEST(Sampler, TakesEveryShapeThroughEveryStage) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<float> logits = make_logits(shape, n, 4);
      for (const char* stages : {"edskypmxt", "txmpyksde", "ttyyssxx"}) {
        for (const int min_keep : {0, 5}) {
          SamplerOptions options = {.temp = 0.7f, .dynatemp_range = 0.3f, .typical_p = 0.9f};
          options.top_n_sigma = 2.0f;
          options.xtc_probability = 0.5f;
          options.repeat_penalty = 1.1f;
          options.dry_multiplier = 0.8f;
          options.min_keep = min_keep;
          options.seed = 9;
          options.stages = parse_stage_letters(stages);
          Sampler sampler(options, static_cast<int>(n));
          for (int step = 0; step < 10; ++step) {
            const TokenId id = sampler.sample(logits);
            ASSERT_GT(logits[static_cast<size_t>(id)], -kInf) << describe(shape, n) << stages;
            double sum = 0.0;
            for (const Candidate& c : sampler.candidates()) sum += c.p;
            ASSERT_NEAR(sum, 1.0, 1e-4) << describe(shape, n) << ", " << stages;
            sampler.accept(id);
          }
        }
      }
    }
  }
}

TEST(SamplerDeathTest, ExpectsADrawnSeedAndTokensOfItsVocabulary) {
  EXPECT_DEATH(Sampler({}, 10), "CHECK");
  EXPECT_DEATH(Sampler(plain(), 0), "CHECK");
  Sampler sampler(plain(), 10);
  EXPECT_DEATH(sampler.accept(10), "CHECK");
  EXPECT_DEATH(sampler.accept(-1), "CHECK");
  EXPECT_DEATH(sampler.sample(std::vector<float>(9)), "CHECK");
}

TEST(Sampler, RefusesOptionsOutOfRange) {
  EXPECT_THROW(Sampler({.top_p = 2.0f, .seed = 1}, 10), Error);
  EXPECT_THROW(Sampler({.seed = 1, .logit_bias = {{10, 0.0f}}}, 10), Error);
}

}  // namespace
}  // namespace sluice::sampler::test
