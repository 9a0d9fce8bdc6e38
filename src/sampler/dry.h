// DRY ("don't repeat yourself"): a token that would continue a repetition of what the text says
// already becomes less likely, the more so the longer the repetition is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "sampler/candidates.h"
#include "sampler/history.h"

namespace sluice::sampler {

struct DryOptions {
  float multiplier = 0.0f;
  float base = 1.75f;
  int allowed_length = 2;
  size_t last_n = 64;
  std::vector<std::vector<TokenId>> breakers;  // none empty
};

class Dry {
 public:
  Dry(DryOptions options, size_t n_vocab);

  void penalise(Candidates& candidates, const History& history);

 private:
  // The last tokens, newest first, into recent_.
  void look_back(const History& history);
  // How many of the newest tokens no breaker reaches into: the longest repetition there can be.
  size_t n_since_breaker() const;
  bool ends_at(const std::vector<TokenId>& breaker, size_t i) const;
  // common_[k] = how many tokens the text's end and the end of the text without its newest k
  // tokens have in common.
  void find_repetitions();

  DryOptions options_;
  std::vector<bool> breaks_alone_;  // by token: it is a breaker by itself
  std::vector<TokenId> recent_;
  std::vector<size_t> common_;
  std::vector<uint32_t> longest_;    // by token: the repetition it would continue, plus 1; else 0
  std::vector<TokenId> continuing_;  // those with one
};

}  // namespace sluice::sampler
