// Misses of a layer, divided between the link and the CPU.
// SPDX-License-Identifier: Apache-2.0
#include "base/miss_split.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(MissSplit, GivesNoneOrAllAtTheEnds) {
  for (int n = 0; n <= 255; ++n) {
    EXPECT_EQ(link_reads(n, 0.0f), 0);
    EXPECT_EQ(link_reads(n, 1.0f), n);
    EXPECT_EQ(link_reads(n, -0.3f), 0);  // never fewer than none
    EXPECT_EQ(link_reads(n, 7.0f), n);   // nor more than there are
  }
}

TEST(MissSplit, RoundsToTheNearestWholeExpertAndHalvesUp) {
  const int expected[] = {0, 0, 1, 1, 1, 2, 2, 2, 2};  // 0.3 of 0 to 8: 1.5 becomes 2
  for (int n = 0; n <= 8; ++n) EXPECT_EQ(link_reads(n, 0.3f), expected[n]) << n;
  EXPECT_EQ(link_reads(1, 0.5f), 1);
  EXPECT_EQ(link_reads(3, 0.5f), 2);
  EXPECT_EQ(link_reads(1, 0.49f), 0);
}

// So that neither side ever gets less work from one miss more.
TEST(MissSplit, GivesOneMissMoreToOneSide) {
  for (int percent = 0; percent <= 100; ++percent) {
    const float share = static_cast<float>(percent) / 100.0f;
    for (int n = 0; n < 255; ++n) {
      const int more = link_reads(n + 1, share) - link_reads(n, share);
      EXPECT_TRUE(more == 0 || more == 1) << n << " misses, share " << share;
    }
  }
}

}  // namespace
}  // namespace sluice
