// Free memory: some, and no more than there is.
// SPDX-License-Identifier: Apache-2.0
#include "base/free_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace sluice {
namespace {

TEST(FreeMemory, IsSomeOfWhatTheMachineHas) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
  const uint64_t all = static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) * page;
  const FreeMemory free = free_memory();
  EXPECT_GT(free.bytes, 0u);
  EXPECT_LT(free.bytes, all);
}

}  // namespace
}  // namespace sluice
