// See chooser.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/chooser.h"

#include <utility>

#include "base/check.h"

namespace sluice::chat {

Chooser::Chooser(sampler::SamplerOptions options, int n_vocab,
                 std::unique_ptr<text::GrammarMatcher> matcher)
    : options_(std::move(options)),
      n_vocab_(n_vocab),
      sampler_(options_, n_vocab),
      matcher_(std::move(matcher)),
      mask_((static_cast<size_t>(n_vocab) + 63) / 64) {}

void Chooser::begin(std::span<const TokenId> text_so_far) {
  sampler_ = sampler::Sampler(options_, n_vocab_);
  options_.seed = (*options_.seed + 1) & 0x7FFFFFFF;
  for (const TokenId token : text_so_far) sampler_.accept(token);
  if (matcher_) matcher_->reset();
}

TokenId Chooser::choose(std::span<const float> logits) {
  TokenId token = 0;
  if (matcher_) {
    matcher_->fill_mask(mask_);
    const sampler::TokenMask mask{mask_};
    token = sampler_.sample(logits, &mask);
    const bool follows = matcher_->accept(token);
    CHECK(follows);
  } else {
    token = sampler_.sample(logits);
  }
  sampler_.accept(token);
  return token;
}

}  // namespace sluice::chat
