// What a model file recommends for sampling: which keys are read, and how a wrong one is refused.
// SPDX-License-Identifier: Apache-2.0
#include "model_file/sampling_defaults.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "sampler/parameters.h"

namespace sluice::model_file::test {
namespace {

using sampler::SamplerOptions;
using sampler::Stage;

gguf::Metadata with(std::initializer_list<std::pair<const char*, gguf::Value>> entries) {
  gguf::Metadata m("m.gguf");
  for (const auto& [key, value] : entries) m.set(key, value);
  return m;
}

std::string refusal_of(const gguf::Metadata& m) {
  try {
    read_sampling_defaults(m);
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), Errc::bad_file) << e.what();
    return e.what();
  }
  return "no error";
}

TEST(SamplingDefaults, AreUnsetWithoutKeys) {
  const SamplerOptions o = read_sampling_defaults(with({{"general.name", std::string("x")}}));
  for (const auto& parameter : sampler::kFloatParameters) {
    EXPECT_FALSE(o.*parameter.member) << parameter.name;
  }
  for (const auto& parameter : sampler::kIntParameters) {
    EXPECT_FALSE(o.*parameter.member) << parameter.name;
  }
  EXPECT_FALSE(o.stages);
  EXPECT_FALSE(o.seed);
  EXPECT_TRUE(o.suppressed.empty());
}

// As published Qwen files have them; an integer is a number, too.
TEST(SamplingDefaults, AreReadFromTheirKeys) {
  const SamplerOptions o = read_sampling_defaults(with({
      {"general.sampling.temp", int32_t{1}},
      {"general.sampling.top_k", int32_t{20}},
      {"general.sampling.top_p", 0.95f},
      {"general.sampling.min_p", 0.0},
      {"general.sampling.xtc_probability", 0.25f},
      {"general.sampling.xtc_threshold", 0.2f},
      {"general.sampling.penalty_last_n", int32_t{-1}},
      {"general.sampling.penalty_repeat", 1.05f},
      {"general.sampling.mirostat", uint8_t{2}},
      {"general.sampling.mirostat_tau", 4.0f},
      {"general.sampling.mirostat_eta", 0.2f},
      {"general.sampling.sequence", std::string("top_k;top_p;temperature")},
  }));
  EXPECT_EQ(o.temp, 1.0f);
  EXPECT_EQ(o.top_k, 20);
  EXPECT_EQ(o.top_p, 0.95f);
  EXPECT_EQ(o.min_p, 0.0f);
  EXPECT_EQ(o.xtc_probability, 0.25f);
  EXPECT_EQ(o.xtc_threshold, 0.2f);
  EXPECT_EQ(o.repeat_last_n, -1);
  EXPECT_EQ(o.repeat_penalty, 1.05f);
  EXPECT_EQ(o.mirostat, 2);
  EXPECT_EQ(o.mirostat_tau, 4.0f);
  EXPECT_EQ(o.mirostat_eta, 0.2f);
  EXPECT_EQ(o.stages, (std::vector{Stage::top_k, Stage::top_p, Stage::temperature}));
  EXPECT_FALSE(o.typical_p);
}

TEST(SamplingDefaults, HaveAKeyForEveryParameterOfAModel) {
  for (const auto& parameter : sampler::kFloatParameters) {
    gguf::Metadata m;
    m.set(cat("general.sampling.", parameter.file_key), parameter.max);
    EXPECT_EQ(read_sampling_defaults(m).*parameter.member, parameter.max) << parameter.name;
  }
  for (const auto& parameter : sampler::kIntParameters) {
    if (parameter.file_key.empty()) continue;
    gguf::Metadata m;
    m.set(cat("general.sampling.", parameter.file_key), int32_t{parameter.max});
    EXPECT_EQ(read_sampling_defaults(m).*parameter.member, parameter.max) << parameter.name;
  }
}

TEST(SamplingDefaults, AreRefusedWithFileAndKey) {
  const std::pair<gguf::Metadata, const char*> cases[] = {
      {with({{"general.sampling.top_p", 1.5f}}),
       "m.gguf: key 'general.sampling.top_p' is 1.5; expected a number from 0 to 1 (off)"},
      {with({{"general.sampling.top_p", std::string("0.9")}}),
       "m.gguf: key 'general.sampling.top_p' is of type string; expected a number"},
      {with({{"general.sampling.temp", std::numeric_limits<float>::quiet_NaN()}}),
       "m.gguf: key 'general.sampling.temp' is nan; expected a finite 32-bit number"},
      {with({{"general.sampling.top_k", 20.0f}}),
       "m.gguf: key 'general.sampling.top_k' is of type f32; expected an integer"},
      {with({{"general.sampling.top_k", int64_t{1} << 40}}),
       "m.gguf: key 'general.sampling.top_k' is 1099511627776; expected a number of tokens; 0 or "
       "less is off"},
      {with({{"general.sampling.penalty_last_n", int32_t{-2}}}),
       "m.gguf: key 'general.sampling.penalty_last_n' is -2; expected a number of tokens, 0 (off) "
       "or -1 (the whole context)"},
      {with({{"general.sampling.mirostat", uint32_t{3}}}),
       "m.gguf: key 'general.sampling.mirostat' is 3; expected 0 (off), 1 or 2"},
      {with({{"general.sampling.sequence", uint32_t{3}}}),
       "m.gguf: key 'general.sampling.sequence' is of type u32; expected a string"},
  };
  for (const auto& [metadata, expected] : cases) EXPECT_EQ(refusal_of(metadata), expected);
  const std::string text =
      refusal_of(with({{"general.sampling.sequence", std::string("top_k;no\nsuch")}}));
  EXPECT_EQ(text.find("m.gguf: key 'general.sampling.sequence' is no list of samplers: unknown "
                      "sampler 'no?such'; expected one of "),
            0u)
      << text;
}

}  // namespace
}  // namespace sluice::model_file::test
