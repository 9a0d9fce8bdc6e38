// No memory is asked for after the first token: all that the program requests is counted here.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sampler/sampler.h"
#include "support/count_allocations.h"
#include "unit/sampler/logits.h"

namespace sluice::sampler::test {
namespace {

using sluice::test::n_requests;

uint64_t requests_of_later_tokens(SamplerOptions options) {
  constexpr size_t kVocab = 5000;
  std::vector<std::vector<float>> logits;
  for (uint64_t i = 0; i < 8; ++i) {
    logits.push_back(make_logits(i % 2 == 0 ? Shape::smooth : Shape::steep, kVocab, i));
  }
  std::vector<uint64_t> words((kVocab + 63) / 64);
  for (size_t w = 0; w < words.size(); ++w) words[w] = random_bits(1, w);
  const TokenMask mask{words};
  options.seed = 1;
  Sampler sampler(options, kVocab);
  sampler.accept(sampler.sample(logits[0]));
  const uint64_t before = n_requests;
  for (size_t i = 0; i < 300; ++i) {
    sampler.accept(sampler.sample(logits[i % 8], i % 3 == 0 ? &mask : nullptr));
  }
  return n_requests - before;
}

TEST(Allocation, TheCounterCounts) {
  const uint64_t before = n_requests;
  const std::vector<char> block(100);
  EXPECT_GE(n_requests - before, 1u);
}

TEST(Allocation, NoTokenAfterTheFirstAllocates) {
  EXPECT_EQ(requests_of_later_tokens({}), 0u);
  EXPECT_EQ(requests_of_later_tokens({.temp = 0.0f}), 0u);
  EXPECT_EQ(requests_of_later_tokens({.temp = 1.0f, .stages = parse_stage_letters("")}), 0u);
  EXPECT_EQ(requests_of_later_tokens({.mirostat = 1}), 0u);
  EXPECT_EQ(requests_of_later_tokens({.mirostat = 2}), 0u);
  SamplerOptions all = {.dynatemp_range = 0.3f, .top_k = 3000, .typical_p = 0.9f};
  all.top_n_sigma = 4.0f;
  all.xtc_probability = 0.5f;
  all.xtc_threshold = 1e-3f;
  all.repeat_penalty = 1.1f;
  all.dry_multiplier = 0.8f;
  all.dry_allowed_length = 0;
  all.dry_breakers = {{1}, {2, 3}};
  all.logit_bias = {{4, -kInf}};
  EXPECT_EQ(requests_of_later_tokens(all), 0u);
  all.stages = parse_stage_letters("txmpyksde");
  EXPECT_EQ(requests_of_later_tokens(all), 0u);
  all.min_keep = 30;
  all.repeat_last_n = -1;
  all.dry_last_n = -1;
  EXPECT_EQ(requests_of_later_tokens(all), 0u) << "up to 4096 tokens";
}

}  // namespace
}  // namespace sluice::sampler::test
