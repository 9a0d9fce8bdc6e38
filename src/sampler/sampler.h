// From logits to a token: bias and mask, then the stages in their order, then one draw. Pure and
// seeded: the same options, logits and accepted tokens give the same tokens, on every machine whose
// log and pow agree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "sampler/candidates.h"
#include "sampler/dry.h"
#include "sampler/history.h"
#include "sampler/mirostat.h"
#include "sampler/options.h"
#include "sampler/penalties.h"
#include "sampler/token_mask.h"
#include "sampler/uniform.h"

namespace sluice::sampler {

// What the chain left of a token.
struct Candidate {
  TokenId id = 0;
  float logit = 0.0f;  // after the chain
  float p = 0.0f;      // these add up to 1
};

class Sampler {
 public:
  // Unset options take their defaults. The seed must have been drawn: not kRandomSeed. Throws
  // Errc::bad_request for options that validate() refuses.
  Sampler(const SamplerOptions& options, int n_vocab);

  // The next token, of n_vocab logits; of those that the mask allows, if there is one. It is not
  // accepted yet. No allocation. Throws Errc::bad_file where the logits are no numbers, and
  // Errc::bad_request where mask and bias leave no token.
  TokenId sample(std::span<const float> logits, const TokenMask* mask = nullptr);

  // Whether it is the best token that is sampled, whatever the text: then no other logit is needed.
  bool takes_best() const {
    return *options_.temp <= 0.0f && chain_.empty() && biases_.empty() && *options_.n_probs == 0;
  }

  // This token is part of the text now: a sampled one, or one of the prompt.
  void accept(TokenId id);

  // As new: an empty text, and the seed again.
  void reset();

  // What the last sample() drew from, in the order of ids; of one token alone where the best is
  // taken (temp <= 0). Valid until the next call of a member that is not const.
  std::span<const Candidate> candidates() const { return drawn_from_; }
  // The n likeliest of them, best first.
  std::vector<Candidate> best_candidates(size_t n) const;

 private:
  uint32_t seed_for_xtc() const;
  void apply(Stage stage);
  TokenId draw();
  [[noreturn]] void fail_empty(std::span<const float> logits, const TokenMask* mask) const;

  SamplerOptions options_;  // resolved
  size_t n_vocab_;
  size_t min_keep_;
  std::vector<Stage> chain_;  // those that change something
  std::vector<LogitBias> biases_;
  Penalties penalties_;
  std::optional<Dry> dry_;
  std::optional<Mirostat> mirostat_;

  Candidates candidates_;
  std::vector<Candidate> drawn_from_;
  bool drawn_ = false;  // by sample(), and not accepted yet
  History history_;
  TokenCounts counts_;
  Uniform uniform_;
  Uniform xtc_uniform_;  // its own, so that the draw stays one number a token
};

}  // namespace sluice::sampler
