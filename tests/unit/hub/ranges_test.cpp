// Sets of ranges against a plain array of flags, and the pieces that are cut of what is missing.
// SPDX-License-Identifier: Apache-2.0
#include "hub/ranges.h"

#include <gtest/gtest.h>

#include <random>

#include "base/units.h"

namespace sluice::hub {

void PrintTo(const Range& r, std::ostream* out) { *out << r.begin << "-" << r.end; }

namespace test {
namespace {

using Ranges = std::vector<Range>;

TEST(RangeSet, JoinsWhatTouches) {
  RangeSet set;
  set.add({10, 20});
  set.add({30, 40});
  set.add({5, 5});
  EXPECT_EQ(set.ranges(), (Ranges{{10, 20}, {30, 40}}));
  EXPECT_EQ(set.first_gap(), 0u);
  set.add({20, 30});
  EXPECT_EQ(set.ranges(), (Ranges{{10, 40}}));
  set.add({0, 12});
  EXPECT_EQ(set.first_gap(), 40u);
  EXPECT_EQ(set.gaps(50), (Ranges{{40, 50}}));
  set.cut(15);
  EXPECT_EQ(set.ranges(), (Ranges{{0, 15}}));
}

TEST(RangeSet, IsWhatAnArrayOfFlagsIs) {
  constexpr uint64_t kBytes = 64;
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    RangeSet set;
    std::vector<bool> flags(kBytes);
    for (int i = 0; i < 12; ++i) {
      const uint64_t begin = random() % kBytes, end = begin + random() % (kBytes - begin + 1);
      set.add({begin, end});
      for (uint64_t b = begin; b < end; ++b) flags[b] = true;
    }
    EXPECT_EQ(set.n_bytes(), static_cast<uint64_t>(std::ranges::count(flags, true)));
    std::vector<bool> missing(kBytes);
    for (const Range& gap : set.gaps(kBytes)) {
      for (uint64_t b = gap.begin; b < gap.end; ++b) missing[b] = true;
    }
    for (uint64_t b = 0; b < kBytes; ++b) ASSERT_NE(flags[b], missing[b]) << round << " " << b;
  }
}

TEST(Pieces, CoverTheGapsAndEndAtMultiples) {
  RangeSet done;
  done.add({0, 5});
  done.add({12, 14});
  EXPECT_EQ(pieces_of(done, 31, 10), (Ranges{{5, 10}, {10, 12}, {14, 20}, {20, 30}, {30, 31}}));
  EXPECT_EQ(pieces_of({}, 20, 10), (Ranges{{0, 10}, {10, 20}}));
  EXPECT_TRUE(pieces_of({}, 0, 10).empty());
}

TEST(Pieces, AreOfAReasonableSize) {
  EXPECT_EQ(piece_bytes_for(0), kMiB);
  EXPECT_EQ(piece_bytes_for(100 * kMiB), 2 * kMiB);
  EXPECT_EQ(piece_bytes_for(kGiB), 16 * kMiB);
  EXPECT_EQ(piece_bytes_for(400 * kGiB), 16 * kMiB);
}

}  // namespace
}  // namespace test
}  // namespace sluice::hub
