// Which bytes of a file are there: a set of ranges that never touch each other, in order. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace sluice::hub {

// The bytes from begin up to, not including, end.
struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  uint64_t n_bytes() const { return end - begin; }
  auto operator<=>(const Range&) const = default;
};

class RangeSet {
 public:
  void add(Range range);
  // Leaves out what lies at `end` and beyond.
  void cut(uint64_t end);

  const std::vector<Range>& ranges() const { return ranges_; }
  uint64_t n_bytes() const;
  // How many bytes there are from the beginning without a gap.
  uint64_t first_gap() const;
  // What a file of this size lacks.
  std::vector<Range> gaps(uint64_t size) const;

 private:
  std::vector<Range> ranges_;
};

// The gaps of a file, cut into pieces of at most `piece_bytes`, the first one first.
std::vector<Range> pieces_of(const RangeSet& done, uint64_t size, uint64_t piece_bytes);

// Pieces are as large as keeps several connections busy to the end: a 64th of the file, from 1 MiB
// to 16 MiB.
uint64_t piece_bytes_for(uint64_t size);

}  // namespace sluice::hub
