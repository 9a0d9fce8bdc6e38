// See history.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/history.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::sampler {
namespace {

constexpr size_t kReserved = 4096;  // tokens; a longer history grows as it fills

}  // namespace

History::History(size_t capacity) : capacity_(capacity) {
  tokens_.reserve(std::min(capacity, kReserved));
}

void History::push(TokenId id) {
  if (capacity_ == 0) return;
  if (tokens_.size() < capacity_) {
    tokens_.push_back(id);
    next_ = tokens_.size();
    return;
  }
  if (next_ == capacity_) next_ = 0;
  tokens_[next_++] = id;
}

void History::clear() {
  tokens_.clear();
  next_ = 0;
}

TokenCounts::TokenCounts(size_t n_vocab) : places_(n_vocab, kNone) {
  entries_.reserve(std::min(n_vocab, kReserved));
}

void TokenCounts::add(TokenId id) {
  int& place = places_[static_cast<size_t>(id)];
  if (place == kNone) {
    place = static_cast<int>(entries_.size());
    entries_.push_back({id, 0});
  }
  ++entries_[static_cast<size_t>(place)].n;
}

void TokenCounts::remove(TokenId id) {
  int& place = places_[static_cast<size_t>(id)];
  CHECK(place != kNone);
  Entry& entry = entries_[static_cast<size_t>(place)];
  if (--entry.n > 0) return;
  entry = entries_.back();
  places_[static_cast<size_t>(entry.id)] = place;
  entries_.pop_back();
  place = kNone;
}

void TokenCounts::clear() {
  for (const Entry& entry : entries_) places_[static_cast<size_t>(entry.id)] = kNone;
  entries_.clear();
}

}  // namespace sluice::sampler
