// How some blocks of a kernel wait for each other and then share some work, in a kernel as in g++
// (meeting.cuh has the word in a card's memory). It is quick where all of them are on the card at
// once, but nothing depends on that: a block that has waited long enough leaves its share to the
// one that comes last. So it ends, as every wait in a step must, whoever else uses the card.
//
// The word's upper half counts; it gains kRound whenever n blocks have come, so nobody resets it:
// the first block adds what the others do not. Its lower half has a bit for each block that left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

constexpr int kMostMeeting = 32;  // blocks

struct MeetingWord {
  static constexpr uint32_t kRound = 64;  // a power of two

  uint64_t bits = 0;

  SLUICE_LANE_FN uint32_t count() const { return static_cast<uint32_t>(bits >> 32); }
  SLUICE_LANE_FN uint32_t left() const { return static_cast<uint32_t>(bits); }
  // The count when all of this round have come.
  SLUICE_LANE_FN uint32_t end() const { return (count() & ~(kRound - 1)) + kRound; }
  SLUICE_LANE_FN bool is_over(uint32_t end) const {
    return static_cast<int32_t>(count() - end) >= 0;
  }
};

// Block `index` of n has come. met: 0 before the first meeting; add, set_bits and clear_bits give
// what stood there before. n_polls: how often to look whether all have come; negative: where there
// is nothing to share, and the last one does all. Returns the blocks whose share is this one's, a
// bit each.
template <typename Word>
SLUICE_LANE_FN uint32_t meet(Word& met, int index, int n, int n_polls) {
  const uint32_t bit = 1u << index;
  const uint32_t more = index == 0 ? MeetingWord::kRound - static_cast<uint32_t>(n) + 1 : 1u;
  const MeetingWord before{met.add(uint64_t{more} << 32)};
  const uint32_t end = before.end();
  if (before.count() + more == end) {  // the last
    if (before.left() != 0) met.clear_bits(before.left());
    return before.left() | bit;
  }
  if (n_polls < 0) return 0;
  SLUICE_ROLLED for (int i = 0; i < n_polls; ++i) {
    if (MeetingWord{met.load()}.is_over(end)) return bit;
  }
  if (!MeetingWord{met.set_bits(bit)}.is_over(end)) return 0;
  met.clear_bits(bit);  // the last one came meanwhile, and did not see it
  return bit;
}

}  // namespace sluice::backend::cuda
