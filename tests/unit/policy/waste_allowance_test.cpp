// The allowance for copies that turn out wrong: what it grows by, and what it does not keep.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/waste_allowance.h"

#include <gtest/gtest.h>

namespace sluice::policy::test {
namespace {

TEST(WasteAllowance, IsAShareOfWhatWasMissedBeyondTheMissesThemselves) {
  WasteAllowance waste(0.25, 1000.0);
  EXPECT_FALSE(waste.allows(1.0));
  waste.account(100.0, 100.0);  // every missed byte was carried: a quarter of them is left
  EXPECT_TRUE(waste.allows(25.0));
  EXPECT_FALSE(waste.allows(25.5));
  waste.account(40.0, 0.0);  // the CPU computed these misses
  EXPECT_TRUE(waste.allows(75.0));
  EXPECT_FALSE(waste.allows(75.5));
}

TEST(WasteAllowance, ACarriedByteIsPaidForAndADebtIsPaidBackFirst) {
  WasteAllowance waste(0.25, 1000.0);
  waste.account(0.0, 50.0);
  EXPECT_FALSE(waste.allows(0.0));
  waste.account(40.0, 0.0);
  EXPECT_TRUE(waste.allows(0.0)) << "50 carried, 1.25 * 40 allowed";
  EXPECT_FALSE(waste.allows(0.5));
}

// A thousand layers whose misses the CPU computed allow no more than one burst of most_bytes.
TEST(WasteAllowance, ALongCheapPhaseDoesNotPayForALongBurst) {
  constexpr double kMost = 300.0;
  WasteAllowance waste(0.0, kMost);
  for (int layer = 0; layer < 1000; ++layer) waste.account(100.0, 0.0);
  EXPECT_TRUE(waste.allows(kMost));
  EXPECT_FALSE(waste.allows(kMost + 0.5));
  double burst = 0.0;
  while (waste.allows(100.0) && burst < 10 * kMost) {
    waste.account(0.0, 100.0);
    burst += 100.0;
  }
  EXPECT_EQ(burst, kMost);
}

}  // namespace
}  // namespace sluice::policy::test
