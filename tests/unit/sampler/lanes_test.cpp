// The vector loops: exact where they are to be exact, and the exponential within its bound.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/lanes.h"

#include <gtest/gtest.h>

#include "unit/sampler/logits.h"

namespace sluice::sampler::test {
namespace {

TEST(Lanes, TheExponentialIsWithinThreeUlp) {
  double worst = 0.0;
  for (int i = 0; i <= 200000; ++i) {
    const auto x = static_cast<float>(-87.0 * i / 200000);
    const double expected = std::exp(static_cast<double>(x));
    const double ulp = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
    worst = std::max(worst, std::abs(exp_of_negative(x) - expected) / ulp);
    ASSERT_LE(worst, 3.0) << "exp(" << x << "): expected " << expected << ", got "
                          << exp_of_negative(x);
  }
  EXPECT_GT(worst, 0.0) << "compared with itself?";
}

TEST(Lanes, TheExponentialIsExactAtItsEnds) {
  EXPECT_EQ(exp_of_negative(0.0f), 1.0f);
  EXPECT_EQ(exp_of_negative(-0.0f), 1.0f);
  EXPECT_EQ(exp_of_negative(-kInf), 0.0f);
  EXPECT_EQ(exp_of_negative(-87.001f), 0.0f);
  EXPECT_EQ(exp_of_negative(-std::numeric_limits<float>::max()), 0.0f);
  EXPECT_GT(exp_of_negative(-87.0f), 0.0f);
}

TEST(Lanes, TheLargestIsFoundWhereverItStands) {
  EXPECT_EQ(max_of({}), -kInf);
  for (const size_t n : {1, 2, 15, 16, 17, 40}) {
    std::vector<float> x(n, -2.0f);
    for (size_t at = 0; at < n; ++at) {
      x[at] = -1.0f;
      EXPECT_EQ(max_of(x), -1.0f) << at << " of " << n;
      x[at] = -2.0f;
    }
    EXPECT_EQ(max_of(x), -2.0f) << n;
  }
}

TEST(Lanes, SumsAreExactForWholeNumbers) {
  for (const size_t n : {0, 1, 15, 16, 17, 1000}) {
    const auto count = static_cast<double>(n);
    EXPECT_EQ(sum_of(n, [](size_t i) { return static_cast<float>(i); }), count * (count - 1) / 2)
        << n;
  }
}

TEST(Lanes, AnyAboveIsStrictAndSeesEveryPlace) {
  for (const size_t n : {1, 7, 64}) {
    std::vector<float> x(n, 1.0f);
    EXPECT_FALSE(any_above(x.data(), n, 1.0f));
    for (size_t at = 0; at < n; ++at) {
      x[at] = 1.5f;
      EXPECT_TRUE(any_above(x.data(), n, 1.0f)) << at << " of " << n;
      x[at] = 1.0f;
    }
  }
}

}  // namespace
}  // namespace sluice::sampler::test
