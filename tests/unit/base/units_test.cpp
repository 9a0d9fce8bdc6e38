// Byte counts as people read them, and rounding up.
// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace sluice {
namespace {

TEST(FormatBytes, ShowsThreeDigitsInTheLargestFittingUnit) {
  struct Case {
    uint64_t bytes;
    const char* expected;
  };
  for (const Case& c : {
           Case{0, "0 B"},
           Case{1, "1 B"},
           Case{999, "999 B"},
           Case{1023, "1023 B"},
           Case{kKiB, "1.00 KiB"},
           Case{kKiB + kKiB / 2, "1.50 KiB"},
           Case{10 * kKiB, "10.0 KiB"},
           Case{100 * kKiB, "100 KiB"},
           Case{1023 * kKiB, "1023 KiB"},
           Case{kMiB, "1.00 MiB"},
           Case{32 * kMiB, "32.0 MiB"},
           Case{kGiB - kMiB, "1023 MiB"},
           Case{kGiB, "1.00 GiB"},
           Case{173 * kGiB / 10, "17.3 GiB"},
           Case{2000 * kGiB, "2000 GiB"},
           Case{std::numeric_limits<uint64_t>::max(), "17179869184 GiB"},
       }) {
    EXPECT_EQ(format_bytes(c.bytes), c.expected) << c.bytes << " bytes";
  }
}

// The digits are those of the rounded number: 9.999 shows as 10.0, and 1023.999 KiB as 1.00 MiB.
TEST(FormatBytes, CountsTheDigitsAfterRounding) {
  EXPECT_EQ(format_bytes(10 * kKiB - 1), "10.0 KiB");
  EXPECT_EQ(format_bytes(100 * kKiB - 1), "100 KiB");
  EXPECT_EQ(format_bytes(kMiB - 1), "1.00 MiB");
  EXPECT_EQ(format_bytes(kGiB - 1), "1.00 GiB");
  // The last ones that still round down: 9.9941, 99.9492 and 1023.4990 KiB.
  EXPECT_EQ(format_bytes(10234), "9.99 KiB");
  EXPECT_EQ(format_bytes(102348), "99.9 KiB");
  EXPECT_EQ(format_bytes(1048063), "1023 KiB");
}

TEST(RoundUp, GivesTheLeastMultipleThatIsNotBelow) {
  static_assert(round_up(0, 64) == 0 && round_up(1, 64) == 64 && round_up(64, 64) == 64);
  for (const uint64_t step : {1, 2, 3, 7, 32, 64, 4096}) {
    for (uint64_t value = 0; value < 3 * step + 2; ++value) {
      const uint64_t up = round_up(value, step);
      EXPECT_EQ(up % step, 0u) << "value " << value << ", step " << step << ", got " << up;
      EXPECT_GE(up, value) << "step " << step;
      EXPECT_LT(up - value, step) << "value " << value << ", got " << up;
    }
  }
}

}  // namespace
}  // namespace sluice
