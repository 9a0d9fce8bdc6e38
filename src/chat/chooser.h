// Chooses the next token of an answer, by sampler and grammar; lives as long as a conversation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sampler/sampler.h"
#include "text/grammar/matcher.h"

namespace sluice::chat {

class Chooser {
 public:
  // matcher: null for no grammar.
  Chooser(sampler::SamplerOptions options, int n_vocab,
          std::unique_ptr<text::GrammarMatcher> matcher);

  // Before an answer: the grammar begins anew, and the penalties see this text. Each answer has a
  // seed of its own, or asking again would give the same.
  void begin(std::span<const TokenId> text_so_far);
  TokenId choose(std::span<const float> logits);
  // How the next answer is chosen; all that sampler::resolve() sets must be set.
  const sampler::SamplerOptions& options() const { return options_; }
  void set_options(sampler::SamplerOptions options) { options_ = std::move(options); }
  // Whether that is always the best one.
  bool takes_best() const { return !matcher_ && sampler_.takes_best(); }

 private:
  sampler::SamplerOptions options_;
  int n_vocab_;
  sampler::Sampler sampler_;
  std::unique_ptr<text::GrammarMatcher> matcher_;
  std::vector<uint64_t> mask_;
};

}  // namespace sluice::chat
