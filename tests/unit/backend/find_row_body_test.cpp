// Where a single row's experts are found (backend/cuda/find_row.h), compiled by g++ with a warp as
// 32 loops: who reads, who asks, and which place a copy gets.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/find_row.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace sluice::backend::cuda {
namespace {

constexpr int kRowUsed = 8;
const uint8_t* row_address(int n) { return reinterpret_cast<const uint8_t*>(intptr_t{4096} * n); }

// Rank k chose expert 10 + k; those in `missing`, bit by bit, are not in the table.
RowFound found_in(const RowPlaces& where, uint32_t missing) {
  PerLane<const uint8_t*> table;
  PerLane<int> experts;
  EACH_LANE(lane) {
    const bool is_there = lane < kRowUsed && (missing >> lane & 1u) == 0;
    table[lane] = is_there ? row_address(1 + lane) : nullptr;
    experts[lane] = 10 + lane;
  }
  return find_row(where, table, experts, kRowUsed);
}

TEST(FindRowBody, WhatIsInTheTableIsTakenFromThere) {
  const RowFound found = found_in({row_address(100), 4096, 1.0f, 0, 9}, 0);
  for (int k = 0; k < kRowUsed; ++k) {
    EXPECT_EQ(found.at[k], row_address(1 + k)) << k;
    EXPECT_EQ(found.landing[k], -1) << k;
  }
  EXPECT_EQ(found.link | found.cpu, 0u);
}

TEST(FindRowBody, TheFirstMissesAreReadAsManyAsTheShareSaysAndTheOthersAskedFor) {
  for (uint32_t missing = 1; missing < 1u << kRowUsed; ++missing) {
    for (const float share : {0.0f, 0.3f, 0.5f, 1.0f}) {
      const RowFound found = found_in({row_address(100), 4096, share, 0, 0}, missing);
      EXPECT_EQ(found.link | found.cpu, missing) << "lanes behind the row's are nobody's";
      EXPECT_EQ(found.link & found.cpu, 0u);
      EXPECT_EQ(std::popcount(found.link), link_reads(std::popcount(missing), share));
      EXPECT_TRUE(found.cpu == 0 || found.link < (found.cpu & -found.cpu)) << "the first are read";
      for (int k = 0; k < kRowUsed; ++k) {
        const bool is_read = found.link >> k & 1u, is_asked = found.cpu >> k & 1u;
        const uint8_t* const there = is_read ? row_address(110 + k) : row_address(1 + k);
        EXPECT_EQ(found.at[k], is_asked ? nullptr : there) << missing << ", rank " << k;
        EXPECT_EQ(found.landing[k], -1);
      }
    }
  }
}

TEST(FindRowBody, ADeviceThatCannotReadTheHostAsksForAll) {
  const RowFound found = found_in({nullptr, 4096, 1.0f, 0, 9}, 0b1010'0100u);
  EXPECT_EQ(found.link, 0u);
  EXPECT_EQ(found.cpu, 0b1010'0100u);
}

// Places go on from where the layer before ended, and end.
TEST(FindRowBody, WhatIsReadLeavesACopyWhileThereArePlaces) {
  const RowFound found = found_in({row_address(100), 4096, 1.0f, 5, 7}, 0b1001'0110u);
  std::vector<int> places(found.landing.value, found.landing.value + kRowUsed);
  EXPECT_EQ(places, (std::vector{-1, 5, 6, -1, -1, -1, -1, -1}));
  EXPECT_EQ(found.link, 0b1001'0110u) << "without a place it is read all the same";
}

}  // namespace
}  // namespace sluice::backend::cuda
