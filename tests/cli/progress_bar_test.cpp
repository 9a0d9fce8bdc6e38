// What a progress bar says: how much is done of what, how fast, and how long it still takes.
// SPDX-License-Identifier: Apache-2.0
#include "cli/terminal/progress_bar.h"

#include <gtest/gtest.h>

namespace sluice::cli::test {
namespace {

TEST(ProgressLine, SaysTheRateAndTheTimeThatIsLeft) {
  EXPECT_EQ(progress_line({3500, 7000, 10.0}, "tokens"),
            "[###############...............] 50 %  3500 of 7000 tokens  350 tokens/s  10 s left");
  EXPECT_EQ(progress_line({7000, 7000, 20.0}, "tokens"),
            "[##############################] 100 %  7000 of 7000 tokens  350 tokens/s  0 s left");
}

TEST(ProgressLine, FitsIntoANarrowTerminal) {
  const auto line = [](size_t n_columns) {
    return progress_line({3500, 7000, 10.0}, "tokens", n_columns);
  };
  EXPECT_EQ(line(60), "[###....] 50 %  3500 of 7000 tokens  350 tokens/s  10 s left");
  EXPECT_EQ(line(50), "50 %  3500 of 7000 tokens  350 tokens/s  10 s left");
  EXPECT_EQ(line(20), "50 %  3500 of 7000 t");
  EXPECT_EQ(line(0), "");
  for (size_t n = 0; n < 120; ++n) EXPECT_LE(line(n).size(), n);
}

TEST(ProgressLine, SaysNothingAboutSpeedBeforeThereIsAny) {
  EXPECT_EQ(progress_line({0, 7000, 0.5}, "tokens"),
            "[..............................] 0 %  0 of 7000 tokens");
}

TEST(ProgressLine, CountsBytesWhereThereIsNoUnit) {
  EXPECT_EQ(progress_line({uint64_t{1} << 30, uint64_t{4} << 30, 2.0}, ""),
            "[#######.......................] 25 %  1.00 GiB of 4.00 GiB  512 MiB/s  6 s left");
}

TEST(ProgressLine, GivesLongTimesInMinutesAndHours) {
  const auto left = [](uint64_t n_seconds) {
    const std::string line = progress_line({1, 1 + n_seconds, 1.0}, "tokens");
    return line.substr(line.find("/s") + 4);
  };
  EXPECT_EQ(left(119), "119 s left");
  EXPECT_EQ(left(150), "2 min left");
  EXPECT_EQ(left(7300), "2 h 1 min left");
}

}  // namespace
}  // namespace sluice::cli::test
