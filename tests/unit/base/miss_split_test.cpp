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

TEST(MissSplit, EndsAsSoonAsAnyDivisionOfWholeExpertsCould) {
  for (const float share : {0.1f, 0.3f, 0.5f, 0.85f, 0.97f}) {
    for (int n = 1; n <= 16; ++n) {
      const auto end = [&](int reads) {
        return std::max(static_cast<float>(reads) * (1.0f - share),
                        static_cast<float>(n - reads) * share);
      };
      float best = end(0);
      for (int reads = 1; reads <= n; ++reads) best = std::min(best, end(reads));
      EXPECT_FLOAT_EQ(end(link_reads(n, share)), best) << n << " misses, share " << share;
    }
  }
  EXPECT_EQ(link_reads(4, 0.85f), 4);  // one for the CPU would take longer than four reads
  EXPECT_EQ(link_reads(1, 0.5f), 1);   // of equal ways the one without the CPU's wait
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
