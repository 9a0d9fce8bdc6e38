// Sets of the places a grammar is in. Mostly there are one or two; in ambiguous texts there may be
// hundreds, and then looking one up must not take hundreds of steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "text/grammar/grammar.h"

namespace sluice::text::grammar {

using StackId = uint32_t;

// A state, and what its rule returns to.
struct Place {
  Grammar::State state = Grammar::kDead;
  StackId stack = 0;
  friend bool operator==(const Place&, const Place&) = default;
};

// More places at once than this, and the text is refused with an Error.
constexpr size_t kMostPlaces = 512;

// How much looking at places is left before a text is refused, too: places alone do not bound the
// work, as each may return to as many others.
class Effort {
 public:
  Effort() = default;  // without end
  explicit Effort(size_t n_steps) : n_left_(n_steps) {}
  // Throws Error where so much is not left.
  void spend(size_t n_steps) {
    if (n_steps > n_left_) refuse();
    n_left_ -= n_steps;
  }
  size_t n_left() const { return n_left_; }

 private:
  [[noreturn]] static void refuse();
  size_t n_left_ = std::numeric_limits<size_t>::max();
};

// In the order they were added, none twice.
class PlaceSet {
 public:
  void clear();
  // Throws Error beyond kMostPlaces.
  void add(Place place);

  size_t size() const { return places_.size(); }
  Place operator[](size_t i) const { return places_[i]; }
  std::span<const Place> all() const { return places_; }

 private:
  struct Slot {
    uint32_t epoch = 0;  // of another epoch: free
    uint32_t place = 0;  // index into places_
  };
  // Slots are at least four times as many as places, and made when first needed.
  static constexpr size_t kSlots = 4 * kMostPlaces;
  static constexpr size_t kFewPlaces = 16;

  bool insert(uint32_t index);

  std::vector<Place> places_;
  std::vector<Slot> slots_;
  uint32_t epoch_ = 1;
};

}  // namespace sluice::text::grammar
