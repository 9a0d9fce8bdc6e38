// The tokens still in the race and their logits, as the stages of the chain see them: to change
// and to thin out. Always in the order of their ids: a stage removes tokens and never reorders
// them. Knows no stage.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "sampler/rank.h"
#include "sampler/token_mask.h"

namespace sluice::sampler {

// A logit of -inf is a token that cannot be drawn; it may be among the candidates all the same.
// The stages rely on one finite logit at least, which the sampler checks before the first.
class Candidates {
 public:
  // Takes all the memory it will ever need.
  explicit Candidates(size_t n_vocab);

  // All tokens, or those that the mask allows. Throws Errc::bad_file for a NaN or +inf, which no
  // sound model computes.
  void load(std::span<const float> logits, const TokenMask* mask);

  size_t size() const { return size_; }
  TokenId id(size_t i) const { return all_ ? static_cast<TokenId>(i) : ids_[i]; }
  std::span<float> logits() { return {logits_.data(), size_}; }
  std::span<const float> logits() const { return {logits_.data(), size_}; }
  float* find(TokenId id);  // its logit; nullptr for one that is out of the race
  float max() const;
  size_t best() const;  // of equal ones the first

  // Sets weights()[i] = exp(logit - max), which makes a probability when divided by their sum;
  // returns the sum.
  double weigh();
  std::span<const float> weights() const { return {weights_.data(), size_}; }

  // Keys that rank the candidates by value(i) (rank.h), for all i where wanted(i). Valid until the
  // next call of a member that returns keys or keeps some candidates.
  template <typename Wanted, typename Value>
  std::span<uint64_t> rank(Wanted&& wanted, Value&& value) {
    keys_.clear();
    for (size_t i = 0; i < size_; ++i) {
      if (wanted(i)) keys_.push_back(rank_key(value(i), i));
    }
    return keys_;
  }
  // Keys of the k best that can be drawn, by their logits, in no order; fewer where there are
  // fewer. Linear in size().
  std::span<uint64_t> rank_best(size_t k);

  // These drop all but ...
  void keep(std::span<const uint64_t> keys);  // the ones the keys name
  void keep_best(size_t k);
  void keep_at_least(double min_logit, size_t min_keep);
  template <typename Wanted>
  void keep_if(Wanted&& wanted) {
    size_t n = 0;
    for (size_t i = 0; i < size_; ++i) {
      if (wanted(i)) move(i, n++);
    }
    shrink(n);
  }

 private:
  void move(size_t from, size_t to) {
    ids_[to] = id(from);
    logits_[to] = logits_[from];
  }
  void shrink(size_t n) {
    size_ = n;
    all_ = false;
  }

  size_t size_ = 0;
  bool all_ = true;              // the whole vocabulary: the id is the index and ids_ is not used
  std::vector<float> logits_;    // the first size_
  std::vector<TokenId> ids_;     // likewise, ascending
  std::vector<float> weights_;   // likewise
  std::vector<uint64_t> keys_;   // scratch of the rankings
  std::vector<uint64_t> marks_;  // scratch of keep(): one bit for each index, else 0
};

}  // namespace sluice::sampler
