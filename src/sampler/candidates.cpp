// See candidates.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/candidates.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/check.h"
#include "base/error.h"
#include "sampler/bounded.h"
#include "sampler/greedy.h"
#include "sampler/lanes.h"

namespace sluice::sampler {
namespace {

constexpr size_t kBlock = 64;  // logits that are passed over together, mostly

size_t n_words(size_t n_bits) { return (n_bits + 63) / 64; }

// visit(i) for every set bit i, in order.
template <typename Visit>
void for_each_bit(std::span<const uint64_t> words, Visit&& visit) {
  for (size_t w = 0; w < words.size(); ++w) {
    for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      visit(w * 64 + static_cast<size_t>(std::countr_zero(bits)));
    }
  }
}

// The largest float below x.
float below(double x) {
  const float near = bounded(x);
  return near < x ? near : std::nextafter(near, -kInf);
}

bool is_sound(float logit) { return logit < kInf; }  // NaN is not

void require_sound(std::span<const float> logits) {
  uint32_t n_broken = 0;
  for (const float logit : logits) n_broken += static_cast<uint32_t>(!is_sound(logit));
  if (n_broken == 0) return;
  const auto first = std::ranges::find_if_not(logits, is_sound);
  throw Error(Errc::bad_file, cat("the model computed ", *first, " as the logit of token ",
                                  first - logits.begin(), " (", n_broken, " of ", logits.size(),
                                  " are unsound); expected numbers; check the model file"));
}

}  // namespace

Candidates::Candidates(size_t n_vocab)
    : logits_(n_vocab), ids_(n_vocab), weights_(n_vocab), marks_(n_words(n_vocab)) {
  keys_.reserve(n_vocab);
}

void Candidates::load(std::span<const float> logits, const TokenMask* mask) {
  CHECK(logits.size() == logits_.size());
  require_sound(logits);
  size_ = logits.size();
  all_ = true;
  if (mask == nullptr) {
    std::ranges::copy(logits, logits_.begin());
    return;
  }
  CHECK(mask->words.size() >= marks_.size());
  size_t n = 0;
  for_each_bit(mask->words.first(marks_.size()), [&](size_t i) {
    if (i >= logits.size()) return;  // a bit past the vocabulary, in the last word
    ids_[n] = static_cast<TokenId>(i);
    logits_[n++] = logits[i];
  });
  shrink(n);
}

float* Candidates::find(TokenId id) {
  if (all_) return &logits_[static_cast<size_t>(id)];
  const auto end = ids_.begin() + static_cast<ptrdiff_t>(size_);
  const auto found = std::lower_bound(ids_.begin(), end, id);
  return found == end || *found != id ? nullptr : &logits_[found - ids_.begin()];
}

float Candidates::max() const { return max_of(logits()); }

size_t Candidates::best() const { return static_cast<size_t>(greedy(logits())); }

double Candidates::weigh() {
  const float most = max();
  DCHECK(most > -kInf);
  const float* l = logits_.data();
  float* w = weights_.data();
  for (size_t i = 0; i < size_; ++i) w[i] = exp_of_negative(l[i] - most);
  return sum_of(size_, [w](size_t i) { return w[i]; });
}

// Keeps a pool of the best so far. When it is full, its k best stay and the worst of these raises
// the bar for all that follow; mostly nothing in a block clears it. An equal one that comes later
// has the higher index and loses, so it need not clear the bar either.
std::span<uint64_t> Candidates::rank_best(size_t k) {
  const size_t pool = std::max<size_t>(4 * std::min(k, size_), 1024);
  float bar = -kInf;
  keys_.clear();
  for (size_t begin = 0; begin < size_; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, size_);
    if (!any_above(&logits_[begin], end - begin, bar)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (logits_[i] > bar) keys_.push_back(rank_key(logits_[i], i));
    }
    if (keys_.size() >= pool) {
      keys_.resize(select_best(keys_, k).size());
      bar = k > 0 ? value_of(keys_.back()) : kInf;
    }
  }
  return select_best(keys_, k);
}

void Candidates::keep(std::span<const uint64_t> keys) {
  for (const uint64_t key : keys) marks_[index_of(key) / 64] |= uint64_t{1} << (index_of(key) % 64);
  const auto marks = std::span(marks_).first(n_words(size_));
  size_t n = 0;
  for_each_bit(marks, [&](size_t i) { move(i, n++); });
  std::ranges::fill(marks, 0);
  shrink(n);
}

void Candidates::keep_best(size_t k) {
  if (k < size_) keep(rank_best(k));
}

void Candidates::keep_at_least(double min_logit, size_t min_keep) {
  const float bar = below(min_logit);
  if (min_keep > 0) {
    size_t n = 0;
    for (const float logit : logits()) n += static_cast<size_t>(logit > bar);
    if (n < min_keep) return keep_best(min_keep);
  }
  size_t n = 0;
  for (size_t begin = 0; begin < size_; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, size_);
    if (!any_above(&logits_[begin], end - begin, bar)) continue;
    for (size_t i = begin; i < end; ++i) {
      if (logits_[i] > bar) move(i, n++);
    }
  }
  shrink(n);
}

}  // namespace sluice::sampler
