// The tokens accepted so far, prompt included, as far back as some stage looks; and how often each
// token stands in the last few of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "base/ids.h"

namespace sluice::sampler {

// A window of 0 or more tokens; kWholeContext has no end, and the history then grows with the text.
inline constexpr size_t kWholeContext = static_cast<size_t>(-1);

inline size_t window_of(int last_n) {
  return last_n < 0 ? kWholeContext : static_cast<size_t>(last_n);
}

// Remembers the last `capacity` tokens.
class History {
 public:
  explicit History(size_t capacity);

  void push(TokenId id);
  void clear();
  size_t size() const { return tokens_.size(); }
  // The i-th last, 0 being the newest; i < size().
  TokenId recent(size_t i) const {
    const size_t behind = i + 1;
    return tokens_[behind <= next_ ? next_ - behind : next_ + tokens_.size() - behind];
  }

 private:
  size_t capacity_;
  size_t next_ = 0;  // where the next token goes; a ring once the capacity is reached
  std::vector<TokenId> tokens_;
};

// How often each token occurs in a window, and which do.
class TokenCounts {
 public:
  explicit TokenCounts(size_t n_vocab);

  struct Entry {
    TokenId id = 0;
    int n = 0;  // at least 1
  };
  std::span<const Entry> entries() const { return entries_; }  // in no order

  void add(TokenId id);
  void remove(TokenId id);  // one that was added
  void clear();

 private:
  static constexpr int kNone = -1;
  std::vector<int> places_;  // token -> its place in entries_
  std::vector<Entry> entries_;
};

}  // namespace sluice::sampler
