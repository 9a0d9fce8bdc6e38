// See sampling.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/sampling.h"

#include <iterator>
#include <random>
#include <utility>

namespace sluice::chat {
namespace {

// DRY compares tokens, so its breakers are needed as tokens too.
std::vector<std::vector<TokenId>> encode_breakers(const text::Tokenizer& tokenizer,
                                                  std::vector<std::string> texts) {
  if (texts.empty())
    texts.assign(std::begin(sampler::kDryBreakers), std::end(sampler::kDryBreakers));
  std::vector<std::vector<TokenId>> breakers;
  for (const std::string& t : texts) {
    auto ids = tokenizer.encode(t, {.add_special = false, .parse_special = false});
    if (!ids.empty()) breakers.push_back(std::move(ids));
  }
  return breakers;
}

}  // namespace

sampler::SamplerOptions resolve_sampling(sampler::SamplerOptions user, const TextModel& model,
                                         const std::vector<std::string>& dry_breakers) {
  user.dry_breakers = encode_breakers(model.tokenizer(), dry_breakers);
  user.end_of_generation = model.end_tokens();
  sampler::SamplerOptions options = sampler::resolve(user, model.sampling_defaults());
  if (*options.seed == sampler::kRandomSeed) options.seed = std::random_device()() >> 1;
  sampler::validate(options, model.tokenizer().n_tokens());
  return options;
}

std::unique_ptr<text::GrammarMatcher> make_matcher(text::Grammar grammar, const TextModel& model) {
  return std::make_unique<text::GrammarMatcher>(
      std::make_shared<const text::Grammar>(std::move(grammar)), model.make_token_trie(),
      model.end_tokens());
}

}  // namespace sluice::chat
