// A function that holds what it captured in itself: called, moved and let go as often as it should.
// SPDX-License-Identifier: Apache-2.0
#include "base/inline_function.h"

#include <gtest/gtest.h>

#include <memory>

namespace sluice::test {
namespace {

TEST(InlineFunction, HoldsWhatItCapturedUntilItEnds) {
  const auto captured = std::make_shared<int>(0);
  {
    InlineFunction<64> first([captured] { ++*captured; });
    EXPECT_EQ(captured.use_count(), 2);
    first();
    InlineFunction<64> second(std::move(first));
    EXPECT_EQ(captured.use_count(), 2);  // moved, not copied
    second();
    InlineFunction<64> third;
    third = std::move(second);
    third();
    EXPECT_EQ(captured.use_count(), 2);
    third = InlineFunction<64>([] {});
    EXPECT_EQ(captured.use_count(), 1);  // let go when another took its place
    third();
    const InlineFunction<64> last([captured] {});
    EXPECT_EQ(captured.use_count(), 2);
  }
  EXPECT_EQ(captured.use_count(), 1);
  EXPECT_EQ(*captured, 3);
}

}  // namespace
}  // namespace sluice::test
