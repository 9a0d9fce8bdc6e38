// See ranges.h.
// SPDX-License-Identifier: Apache-2.0
#include "hub/ranges.h"

#include <algorithm>

#include "base/units.h"

namespace sluice::hub {

void RangeSet::add(Range range) {
  if (range.begin >= range.end) return;
  const auto first = std::ranges::lower_bound(ranges_, range.begin, {}, &Range::end);
  auto last = first;
  while (last != ranges_.end() && last->begin <= range.end) {
    range.begin = std::min(range.begin, last->begin);
    range.end = std::max(range.end, last->end);
    ++last;
  }
  ranges_.insert(ranges_.erase(first, last), range);
}

void RangeSet::cut(uint64_t end) {
  std::erase_if(ranges_, [&](const Range& r) { return r.begin >= end; });
  if (!ranges_.empty()) ranges_.back().end = std::min(ranges_.back().end, end);
}

uint64_t RangeSet::n_bytes() const {
  uint64_t n = 0;
  for (const Range& r : ranges_) n += r.n_bytes();
  return n;
}

uint64_t RangeSet::first_gap() const {
  return ranges_.empty() || ranges_.front().begin > 0 ? 0 : ranges_.front().end;
}

std::vector<Range> RangeSet::gaps(uint64_t size) const {
  std::vector<Range> out;
  uint64_t at = 0;
  for (const Range& r : ranges_) {
    if (r.begin > at) out.push_back({at, std::min(r.begin, size)});
    at = r.end;
  }
  if (at < size) out.push_back({at, size});
  return out;
}

std::vector<Range> pieces_of(const RangeSet& done, uint64_t size, uint64_t piece_bytes) {
  std::vector<Range> out;
  for (const Range& gap : done.gaps(size)) {
    for (uint64_t at = gap.begin; at < gap.end;) {
      // Pieces end at multiples, wherever an earlier attempt stopped.
      const uint64_t end = std::min(gap.end, (at / piece_bytes + 1) * piece_bytes);
      out.push_back({at, end});
      at = end;
    }
  }
  return out;
}

uint64_t piece_bytes_for(uint64_t size) {
  return std::clamp(round_up(size / 64, kMiB), kMiB, 16 * kMiB);
}

}  // namespace sluice::hub
