// The machine's yardsticks give figures. How high they are depends on the machine and on what else
// it does: `sluice bench` prints them.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/machine_speed.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::cli::test {
namespace {

TEST(MachineSpeed, OfReadingIsANumber) {
  for (const int n_threads : {1, 2}) {
    ThreadPool pool(n_threads);
    const double speed = read_bytes_per_second(pool);
    EXPECT_TRUE(speed > 0.0 && std::isfinite(speed)) << speed << ", " << n_threads << " threads";
  }
}

TEST(MachineSpeed, OfInt8NamesItsInstruction) {
  ThreadPool pool(1);
  const Int8Speed speed = int8_speed(pool);
  EXPECT_FALSE(speed.instruction.empty());
  EXPECT_TRUE(speed.ops_per_second > 0.0 && std::isfinite(speed.ops_per_second));
}

}  // namespace
}  // namespace sluice::cli::test
