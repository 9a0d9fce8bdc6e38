// The two comparisons of these tests: to the bit, and within a bound of a float64 number. Both stop
// at the first difference and print case, index, expected, got and bound.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace sluice::backend::test {

inline void expect_same_bits(std::span<const float> expected, std::span<const float> got,
                             const std::string& what) {
  ASSERT_EQ(expected.size(), got.size()) << what;
  if (std::memcmp(expected.data(), got.data(), expected.size_bytes()) == 0) return;
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(expected[i]), std::bit_cast<uint32_t>(got[i]))
        << what << ", index " << i << ", expected " << expected[i] << ", got " << got[i];
  }
}

// A number in exact arithmetic and how far a float32 computation may be from it.
struct Bounded {
  double value = 0;
  double error = 0;

  double magnitude() const { return std::abs(value) + error; }
};
using BoundedRow = std::vector<Bounded>;

inline void expect_within(std::span<const Bounded> expected, std::span<const float> got,
                          const std::string& what) {
  ASSERT_EQ(expected.size(), got.size()) << what;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = std::abs(got[i] - expected[i].value);
    ASSERT_TRUE(difference <= expected[i].error)
        << what << ", index " << i << ", expected " << expected[i].value << ", got " << got[i]
        << ", off by " << difference << ", bound " << expected[i].error;
  }
}

// A bound as large as the numbers themselves shows nothing: the largest must stay below `share` of
// the largest number.
inline void expect_sharp(std::span<const Bounded> expected, double share, const std::string& what) {
  double error = 0, value = 0;
  for (const Bounded& b : expected) {
    error = std::max(error, b.error);
    value = std::max(value, std::abs(b.value));
  }
  EXPECT_LT(error, share * value) << what << ": the bound shows nothing";
}

}  // namespace sluice::backend::test
