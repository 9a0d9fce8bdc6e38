// All that a user, a request or a model file may say about sampling. What is left unset is filled
// in by resolve(): the user first, then the model file, then the defaults of parameters.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "sampler/stage.h"

namespace sluice::sampler {

// As a seed: the caller draws one, and tells the sampler that.
inline constexpr uint32_t kRandomSeed = 0xFFFFFFFF;

// The texts that DRY does not match across by default; the caller turns them into token ids.
inline constexpr std::string_view kDryBreakers[] = {"\n", ":", "\"", "*"};

// Added to the token's logit; -inf: never sampled. Several for one token add up.
struct LogitBias {
  TokenId id = 0;
  float bias = 0.0f;
};

// Ranges, defaults and what switches a number off stand in parameters.h.
struct SamplerOptions {
  std::optional<float> temp;  // 0 or less: always the best token
  std::optional<float> dynatemp_range;
  std::optional<float> dynatemp_exponent;
  std::optional<int> top_k;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<float> typical_p;
  std::optional<float> top_n_sigma;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;

  std::optional<float> repeat_penalty;
  std::optional<float> frequency_penalty;
  std::optional<float> presence_penalty;
  std::optional<int> repeat_last_n;  // -1: the whole context

  std::optional<float> dry_multiplier;
  std::optional<float> dry_base;
  std::optional<int> dry_allowed_length;
  std::optional<int> dry_last_n;                                  // -1: the whole context
  std::optional<std::vector<std::vector<TokenId>>> dry_breakers;  // each a sequence of tokens

  std::optional<int> mirostat;  // 1 or 2: instead of the chain
  std::optional<float> mirostat_tau;
  std::optional<float> mirostat_eta;

  std::optional<int> min_keep;  // for every truncation but top_k
  std::optional<int> n_probs;   // for the caller: how many of the candidates to report
  std::optional<uint32_t> seed;
  std::optional<std::vector<Stage>> stages;

  std::vector<LogitBias> logit_bias;
  std::vector<TokenId> suppressed;  // never sampled
  std::vector<TokenId> end_of_generation;
  bool ignore_eos = false;  // never sample a token of end_of_generation
};

// Everything set. Lists of tokens and biases add up; of dry_breakers and stages one is taken whole.
SamplerOptions resolve(const SamplerOptions& user, const SamplerOptions& model_defaults = {});

// Throws Errc::bad_request for a number out of its range and for a token that is not below n_vocab.
void validate(const SamplerOptions& options, int n_vocab);

}  // namespace sluice::sampler
