// See options.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/options.h"

#include <cmath>

#include "base/error.h"
#include "sampler/parameters.h"

namespace sluice::sampler {
namespace {

template <typename T>
void fill_in(const Parameter<T>& parameter, const SamplerOptions& from, SamplerOptions& to) {
  std::optional<T>& value = to.*parameter.member;
  if (!value) value = (from.*parameter.member).value_or(parameter.fallback);
}

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

template <typename T>
void check_range(const Parameter<T>& parameter, const SamplerOptions& options) {
  const std::optional<T>& value = options.*parameter.member;
  if (!value || parameter.allows(*value)) return;
  throw Error(Errc::bad_request,
              cat(parameter.name, " is ", *value, "; expected ", parameter.expected));
}

void check_token(std::string_view where, TokenId id, int n_vocab) {
  if (id >= 0 && id < n_vocab) return;
  throw Error(Errc::bad_request, cat(where, " names token ", id, "; expected an id from 0 to ",
                                     n_vocab - 1, ", the last of the vocabulary"));
}

void check_bias(const LogitBias& b) {
  if (b.bias < kMostFloat || b.bias == kMostFloat) return;  // so also -inf, but neither inf nor NaN
  throw Error(Errc::bad_request, cat("logit_bias of token ", b.id, " is ", b.bias,
                                     "; expected a finite number, or -inf to forbid the token"));
}

}  // namespace

SamplerOptions resolve(const SamplerOptions& user, const SamplerOptions& model_defaults) {
  SamplerOptions all = user;
  for (const auto& parameter : kFloatParameters) fill_in(parameter, model_defaults, all);
  for (const auto& parameter : kIntParameters) fill_in(parameter, model_defaults, all);
  if (!all.seed) all.seed = model_defaults.seed.value_or(kRandomSeed);
  if (!all.stages) all.stages = model_defaults.stages ? model_defaults.stages : default_stages();
  if (!all.dry_breakers) all.dry_breakers = model_defaults.dry_breakers;
  if (!all.dry_breakers) all.dry_breakers.emplace();
  append(all.logit_bias, model_defaults.logit_bias);
  append(all.suppressed, model_defaults.suppressed);
  append(all.end_of_generation, model_defaults.end_of_generation);
  all.ignore_eos = user.ignore_eos || model_defaults.ignore_eos;
  return all;
}

void validate(const SamplerOptions& options, int n_vocab) {
  for (const auto& parameter : kFloatParameters) check_range(parameter, options);
  for (const auto& parameter : kIntParameters) check_range(parameter, options);
  if (options.stages) check_stage_count(options.stages->size());
  for (const LogitBias& b : options.logit_bias) {
    check_token("logit_bias", b.id, n_vocab);
    check_bias(b);
  }
  for (const TokenId id : options.suppressed) check_token("the suppressed tokens", id, n_vocab);
  for (const TokenId id : options.end_of_generation) {
    check_token("the end-of-generation set", id, n_vocab);
  }
  if (!options.dry_breakers) return;
  for (const std::vector<TokenId>& breaker : *options.dry_breakers) {
    if (breaker.empty()) {
      throw Error(Errc::bad_request, "a DRY breaker is empty; expected one token or more in each");
    }
    for (const TokenId id : breaker) check_token("a DRY breaker", id, n_vocab);
  }
}

}  // namespace sluice::sampler
