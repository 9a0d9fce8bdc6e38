// Copies held to a slower link, by a clock that the test sets.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/link_pace.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::engine::test {
namespace {

constexpr uint64_t kBytes = 1'000'000;  // a millisecond at 1 GB/s

class LinkPaceTest : public testing::Test {
 protected:
  // A copy that takes so long by itself, after a rest. Waits are `late` seconds too long.
  void copy(double seconds, double rest = 0.0) {
    now += rest;
    pace.begin();
    now += seconds;
    pace.end(kBytes);
  }

  double now = 5.0, late = 0.0;
  LinkPace pace{1.0,
                {[this] { return now; },
                 [this](double then) {
                   if (then > now) now = then + late;
                 }}};
};

TEST_F(LinkPaceTest, ACopyTakesAsLongAsOnTheSlowLink) {
  copy(50e-6);
  EXPECT_NEAR(now, 5.001, 1e-9);
  copy(50e-6, 0.5);  // what the link had to spare meanwhile is gone
  EXPECT_NEAR(now, 5.502, 1e-9);
}

TEST_F(LinkPaceTest, CopiesThatFollowEachOtherLoseNothingToLateWaits) {
  late = 60e-6;
  for (int i = 0; i < 1000; ++i) copy(50e-6, 10e-6);
  EXPECT_NEAR(now, 6.0, 100e-6);
}

// What a copy took too long, those behind it do not get back.
TEST_F(LinkPaceTest, ACopyThatIsSlowerByItselfIsNotHeld) {
  copy(0.1);
  EXPECT_NEAR(now, 5.1, 1e-9);
  copy(50e-6);
  EXPECT_NEAR(now, 5.101, 1e-9);
}

}  // namespace
}  // namespace sluice::engine::test
