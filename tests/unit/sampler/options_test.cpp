// Options: who fills in what, which values are refused and with which words, and the order of
// stages as text.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/options.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "base/error.h"
#include "sampler/lanes.h"
#include "sampler/parameters.h"

namespace sluice::sampler::test {
namespace {

template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::bad_request) << e.what();
    return e.what();
  }
  return "no error";
}

// Spec, section 5.
TEST(SamplerOptions, HaveTheseDefaults) {
  const SamplerOptions o = resolve({});
  EXPECT_EQ(o.temp, 0.8f);
  EXPECT_EQ(o.top_k, 40);
  EXPECT_EQ(o.top_p, 0.95f);
  EXPECT_EQ(o.min_p, 0.05f);
  EXPECT_EQ(o.typical_p, 1.0f);
  EXPECT_EQ(o.top_n_sigma, -1.0f);
  EXPECT_EQ(o.dynatemp_range, 0.0f);
  EXPECT_EQ(o.dynatemp_exponent, 1.0f);
  EXPECT_EQ(o.repeat_penalty, 1.0f);
  EXPECT_EQ(o.repeat_last_n, 64);
  EXPECT_EQ(o.presence_penalty, 0.0f);
  EXPECT_EQ(o.frequency_penalty, 0.0f);
  EXPECT_EQ(o.dry_multiplier, 0.0f);
  EXPECT_EQ(o.dry_base, 1.75f);
  EXPECT_EQ(o.dry_allowed_length, 2);
  EXPECT_EQ(o.dry_last_n, 64);
  EXPECT_EQ(o.xtc_probability, 0.0f);
  EXPECT_EQ(o.xtc_threshold, 0.1f);
  EXPECT_EQ(o.mirostat, 0);
  EXPECT_EQ(o.mirostat_tau, 5.0f);
  EXPECT_EQ(o.mirostat_eta, 0.1f);
  EXPECT_EQ(o.min_keep, 0);
  EXPECT_EQ(o.n_probs, 0);
  EXPECT_EQ(o.seed, kRandomSeed);
  EXPECT_EQ(o.stages, parse_stage_letters("edskypmxt"));
  EXPECT_EQ(o.dry_breakers->size(), 0u);
  EXPECT_FALSE(o.ignore_eos);
  validate(o, 1);
}

TEST(SamplerOptions, TheUserComesBeforeTheModelAndThatBeforeTheDefaults) {
  const SamplerOptions user = {.top_k = 7, .seed = 5};
  SamplerOptions model;
  model.top_k = 20;
  model.temp = 1.0f;
  model.stages = parse_stage_letters("kt");
  model.dry_breakers = {{1}, {2, 3}};
  const SamplerOptions o = resolve(user, model);
  EXPECT_EQ(o.top_k, 7);
  EXPECT_EQ(o.temp, 1.0f);
  EXPECT_EQ(o.top_p, 0.95f);
  EXPECT_EQ(o.seed, 5u);
  EXPECT_EQ(o.stages, model.stages);
  EXPECT_EQ(o.dry_breakers, model.dry_breakers);
  SamplerOptions other = user;
  other.stages.emplace();
  other.dry_breakers.emplace();
  EXPECT_TRUE(resolve(other, model).stages->empty()) << "given, though empty";
  EXPECT_TRUE(resolve(other, model).dry_breakers->empty());
}

TEST(SamplerOptions, ListsOfTokensAddUp) {
  const SamplerOptions user = {.logit_bias = {{1, 2.0f}}, .suppressed = {3}};
  const SamplerOptions model = {
      .logit_bias = {{1, 1.0f}}, .suppressed = {4}, .end_of_generation = {5}, .ignore_eos = true};
  const SamplerOptions o = resolve(user, model);
  ASSERT_EQ(o.logit_bias.size(), 2u);
  EXPECT_EQ(o.logit_bias[1].bias, 1.0f);
  EXPECT_EQ(o.suppressed, (std::vector<TokenId>{3, 4}));
  EXPECT_EQ(o.end_of_generation, (std::vector<TokenId>{5}));
  EXPECT_TRUE(o.ignore_eos);
}

template <typename T>
void expect_range(const Parameter<T>& parameter, std::initializer_list<T> outside) {
  for (const T value : {parameter.min, parameter.max, parameter.fallback}) {
    SamplerOptions o;
    o.*parameter.member = value;
    EXPECT_EQ(error_of([&] { validate(o, 10); }), "no error") << parameter.name << " " << value;
  }
  for (const T value : outside) {
    if (parameter.allows(value)) continue;
    SamplerOptions o;
    o.*parameter.member = value;
    const std::string text = error_of([&] { validate(o, 10); });
    EXPECT_EQ(text.find(cat(parameter.name, " is ", value, "; expected ")), 0u) << text;
  }
}

TEST(SamplerOptions, EveryNumberHasItsRange) {
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  for (const auto& parameter : kFloatParameters) {
    expect_range(parameter, {kNan, kInf, -kInf, -1e-6f, -1.0f, 1.001f});
    EXPECT_FALSE(parameter.allows(kNan) || parameter.allows(kInf)) << parameter.name;
  }
  for (const auto& parameter : kIntParameters) expect_range(parameter, {-2, -1, 3});
  const auto refused = [](const SamplerOptions& o) {
    return error_of([&] { validate(o, 10); }) != "no error";
  };
  EXPECT_TRUE(refused({.top_p = 1.5f}) && refused({.top_p = -0.1f}));
  EXPECT_TRUE(refused({.min_p = 1.5f}) && refused({.typical_p = 2.0f}));
  EXPECT_TRUE(refused({.xtc_probability = 1.1f}) && refused({.xtc_threshold = -1.0f}));
  EXPECT_TRUE(refused({.repeat_penalty = 0.0f}) && refused({.repeat_penalty = -1.0f}));
  EXPECT_TRUE(refused({.dry_base = 0.9f}) && refused({.dry_multiplier = -1.0f}));
  EXPECT_TRUE(refused({.repeat_last_n = -2}) && refused({.dry_last_n = -2}));
  EXPECT_TRUE(refused({.mirostat = 3}) && refused({.mirostat_tau = -1.0f}));
  EXPECT_TRUE(refused({.min_keep = -1}) && refused({.n_probs = -1}));
  EXPECT_FALSE(refused({.temp = -1.0f}) || refused({.top_k = -1}) || refused({.top_n_sigma = -1}));
}

TEST(SamplerOptions, ParameterNamesAreUnique) {
  std::vector<std::string_view> names;
  std::vector<std::string_view> keys;
  const auto collect = [&](const auto& parameter) {
    names.push_back(parameter.name);
    if (!parameter.file_key.empty()) keys.push_back(parameter.file_key);
  };
  for (const auto& parameter : kFloatParameters) collect(parameter);
  for (const auto& parameter : kIntParameters) collect(parameter);
  for (auto* list : {&names, &keys}) {
    std::ranges::sort(*list);
    EXPECT_EQ(std::ranges::adjacent_find(*list), list->end());
  }
  EXPECT_EQ(names.size(), 23u) << "all of the spec's table but the seed and the breakers";
}

TEST(SamplerOptions, TokensMustBeOfTheVocabulary) {
  const auto text = [](const SamplerOptions& o) { return error_of([&] { validate(o, 10); }); };
  for (const TokenId id : {-1, 10, 1 << 30}) {
    const std::string token = cat("names token ", id, "; expected an id from 0 to 9");
    EXPECT_EQ(text({.logit_bias = {{id, 1.0f}}}).find("logit_bias " + token), 0u);
    EXPECT_EQ(text({.suppressed = {0, id}}).find("the suppressed tokens " + token), 0u);
    EXPECT_EQ(text({.end_of_generation = {id}}).find("the end-of-generation set " + token), 0u);
    EXPECT_EQ(text({.dry_breakers = {{{1, id}}}}).find("a DRY breaker " + token), 0u);
  }
  EXPECT_EQ(text({.dry_breakers = {{{1}, {}}}}),
            "a DRY breaker is empty; expected one token or more in each");
}

TEST(SamplerOptions, ABiasIsFiniteOrForbids) {
  const auto text = [](float bias) {
    return error_of([&] { validate({.logit_bias = {{3, bias}}}, 10); });
  };
  EXPECT_EQ(text(-kInf), "no error");
  EXPECT_EQ(text(std::numeric_limits<float>::max()), "no error");
  EXPECT_EQ(text(-1e38f), "no error");
  for (const float bias : {kInf, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(text(bias), cat("logit_bias of token 3 is ", bias,
                              "; expected a finite number, or -inf to forbid the token"));
  }
}

using Stages = std::vector<Stage>;

TEST(Stages, AreReadFromLetters) {
  EXPECT_EQ(parse_stage_letters(""), Stages{});
  EXPECT_EQ(parse_stage_letters("tkpp"),
            (Stages{Stage::temperature, Stage::top_k, Stage::top_p, Stage::top_p}));
  EXPECT_EQ(parse_stage_letters("edskypmxt"), default_stages());
  EXPECT_EQ(error_of([] {
              parse_stage_letters("kq");
            }).find("unknown sampler 'q'; expected one of penalties (e), dry (d), "),
            0u);
  EXPECT_EQ(error_of([] { parse_stage_letters("\n"); }).find("unknown sampler '?'"), 0u);
}

TEST(Stages, AreReadFromNames) {
  EXPECT_EQ(parse_stage_names(""), Stages{});
  EXPECT_EQ(parse_stage_names("top_k;top_p;temperature"),
            (Stages{Stage::top_k, Stage::top_p, Stage::temperature}));
  EXPECT_EQ(parse_stage_names("Top-K; topp ;TEMP;nucleus;typ;typical_p;typ-p"),
            (Stages{Stage::top_k, Stage::top_p, Stage::temperature, Stage::top_p, Stage::typical_p,
                    Stage::typical_p, Stage::typical_p}));
  for (const StageName& known : kStageNames) {
    EXPECT_EQ(parse_stage_names(known.name), Stages{known.stage}) << known.name;
  }
  for (const char* text : {"top_k;;top_p", "top_k;", ";top_k", "top_k,top_p", "infill"}) {
    EXPECT_EQ(error_of([&] { parse_stage_names(text); }).find("unknown sampler '"), 0u) << text;
  }
  const std::string text = error_of([] { parse_stage_names("x\n" + std::string(500, 'y')); });
  EXPECT_EQ(text.find("unknown sampler 'x?yyy"), 0u) << text;
  EXPECT_LT(text.size(), 300u);
}

TEST(Stages, AreNotMoreThanReason) {
  EXPECT_EQ(parse_stage_letters(std::string(kMaxStages, 't')).size(), kMaxStages);
  const std::string expected = "a chain of 33 samplers; expected at most 32";
  EXPECT_EQ(error_of([] { parse_stage_letters(std::string(33, 't')); }), expected);
  std::string names = "t";
  for (int i = 0; i < 40; ++i) names = "temp;" + std::string(i == 0 ? "temp" : names);
  EXPECT_EQ(error_of([&] { parse_stage_names(names); }), expected);
  EXPECT_EQ(error_of([] { validate({.stages = Stages(33, Stage::top_k)}, 10); }), expected);
}

}  // namespace
}  // namespace sluice::sampler::test
