// The two ways to fail (Error and CHECK), cat(), and the strong ids.
// SPDX-License-Identifier: Apache-2.0
#include "base/error.h"

#include <gtest/gtest.h>

#include <string_view>
#include <type_traits>

#include "base/check.h"
#include "base/ids.h"

namespace sluice {
namespace {

TEST(Cat, JoinsItsArgumentsAsStreamsPrintThem) {
  EXPECT_EQ(cat(""), "");
  EXPECT_EQ(cat("a", 1, std::string("b"), std::string_view("c"), 'd', -2.5, uint64_t{1} << 63),
            "a1bcd-2.59223372036854775808");
}

TEST(Error, CarriesItsCodeAndText) {
  try {
    throw Error(Errc::out_of_memory, cat("need ", 3, " MiB"));
  } catch (const std::runtime_error& caught) {
    const auto* error = dynamic_cast<const Error*>(&caught);
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code(), Errc::out_of_memory);
    EXPECT_STREQ(error->what(), "need 3 MiB");
  }
}

TEST(Check, EvaluatesItsConditionOnceAndGoesOn) {
  int n = 0;
  CHECK(++n == 1);
  EXPECT_EQ(n, 1);
}

TEST(CheckDeathTest, AFailureNamesConditionFileAndLine) {
  const std::string place = cat("error_test.cpp:", __LINE__ + 1);
  EXPECT_DEATH(CHECK(1 + 1 == 3), cat("internal error: CHECK.1 . 1 == 3. failed at .*", place));
}

TEST(CheckDeathTest, CheckIsOnInReleaseAndDcheckIsNot) {
  EXPECT_DEATH(CHECK(false), "CHECK.false.");
#ifdef NDEBUG
  DCHECK(false);
#else
  EXPECT_DEATH(DCHECK(false), "CHECK.false.");
#endif
}

TEST(Ids, OfDifferentKindsDoNotMix) {
  static_assert(!std::is_convertible_v<LayerId, ExpertId>);
  static_assert(!std::is_constructible_v<LayerId, ExpertId>);
  static_assert(!std::is_convertible_v<int, LayerId> && !std::is_convertible_v<LayerId, int>);
  EXPECT_LT(LayerId(1), LayerId(2));
  EXPECT_EQ(ExpertId(), ExpertId(0));
  EXPECT_NE(SequenceId(3), SequenceId(4));
}

}  // namespace
}  // namespace sluice
