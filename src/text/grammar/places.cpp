// See places.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/places.h"

#include <algorithm>

#include "base/error.h"
#include "base/random.h"

namespace sluice::text::grammar {

void Effort::refuse() {
  throw Error(
      Errc::bad_request,
      "the text can be read in so many ways by the grammar that following them all takes too "
      "long; make the grammar less ambiguous");
}

void PlaceSet::clear() {
  places_.clear();
  ++epoch_;
}

// False if an equal place is there already.
bool PlaceSet::insert(uint32_t index) {
  const Place place = places_[index];
  const uint64_t key = uint64_t{place.state} << 32 | place.stack;
  for (size_t slot = mix64(key) % kSlots;; slot = (slot + 1) % kSlots) {
    if (slots_[slot].epoch != epoch_) {
      slots_[slot] = {epoch_, index};
      return true;
    }
    if (places_[slots_[slot].place] == place) return false;
  }
}

void PlaceSet::add(Place place) {
  if (places_.size() <= kFewPlaces) {
    if (std::ranges::find(places_, place) != places_.end()) return;
    places_.push_back(place);
    if (places_.size() <= kFewPlaces) return;
    slots_.resize(kSlots);
    for (uint32_t i = 0; i < places_.size(); ++i) insert(i);
    return;
  }
  places_.push_back(place);
  if (!insert(static_cast<uint32_t>(places_.size() - 1))) places_.pop_back();
  if (places_.size() > kMostPlaces) {
    throw Error(Errc::bad_request,
                cat("the text can be read in more than ", kMostPlaces,
                    " ways by the grammar, which is the limit; make the grammar less ambiguous"));
  }
}

}  // namespace sluice::text::grammar
