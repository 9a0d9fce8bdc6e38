// The machine's yardsticks: plausible figures. How they grow with the threads depends on what else
// the machine does, and is not tested.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/machine_speed.h"

#include <gtest/gtest.h>

namespace sluice::cli::test {
namespace {

// No memory that sluice runs on is slower than 0.1 GB/s, none of this decade reaches 10 TB/s.
TEST(MachineSpeed, OfReadingIsThatOfSomeMemory) {
  for (const int n_threads : {1, 2}) {
    ThreadPool pool(n_threads);
    const double speed = read_bytes_per_second(pool);
    EXPECT_GT(speed, 0.1e9) << n_threads;
    EXPECT_LT(speed, 10e12) << n_threads;
  }
}

TEST(MachineSpeed, OfInt8NamesItsInstructionAndIsFasterThanAByteACycle) {
  ThreadPool pool(1);
  const Int8Speed speed = int8_speed(pool);
  EXPECT_FALSE(speed.instruction.empty());
  EXPECT_GT(speed.ops_per_second, 1e9);
  EXPECT_LT(speed.ops_per_second, 100e12);
}

}  // namespace
}  // namespace sluice::cli::test
