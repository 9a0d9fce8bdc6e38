// Temperature and dynamic temperature against their formulas in double.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/temperature.h"

#include <gtest/gtest.h>

#include <tuple>

#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Ids = std::set<size_t>;

TEST(Temperature, DividesEveryLogit) {
  for (const Shape shape : kShapes) {
    if (shape == Shape::huge) continue;  // see the overflow below
    const std::vector<float> logits = make_logits(shape, 1000, 1);
    for (const double t : {0.01, 0.7, 1.0, 2.5}) {
      Candidates c = load(logits);
      temperature(c, t);
      ASSERT_EQ(c.size(), logits.size());
      for (size_t i = 0; i < c.size(); ++i) {
        ASSERT_EQ(c.logits()[i], logits[i] / static_cast<float>(t))
            << describe(shape, 1000) << ", T " << t << ", token " << i;
      }
    }
  }
}

TEST(Temperature, LeavesTheBestAloneAtZeroAndBelow) {
  const std::vector<float> logits = {1, 5, 5, 2};
  for (const double t : {0.0, -1.0, -1e300}) {
    EXPECT_EQ(kept(logits, [&](Candidates& c) { temperature(c, t); }), (Ids{1})) << t;
  }
}

TEST(Temperature, LeavesTheBestAloneWhereQuotientsOverflow) {
  const auto after = [](const std::vector<float>& logits, double t) {
    return kept(logits, [&](Candidates& c) { temperature(c, t); });
  };
  EXPECT_EQ(after({3e38f, 2e38f}, 0.5), (Ids{0}));
  EXPECT_EQ(after({-3e38f, -2e38f}, 0.5), (Ids{1}));
  EXPECT_EQ(after({1.0f, 2.0f}, 1e-39), (Ids{1}));
  EXPECT_EQ(after({1.0f, 2.0f}, 1e300), (Ids{0, 1})) << "all alike, and no NaN";
  EXPECT_EQ(after({1.0f, -3e38f}, 0.5), (Ids{0, 1})) << "the best stays in range";
}

TEST(DynamicTemperature, FollowsTheEntropy) {
  for (const Shape shape : {Shape::smooth, Shape::steep, Shape::ties, Shape::equal, Shape::holes}) {
    for (const size_t n : {2, 3, 64, 1000}) {
      const std::vector<float> logits = make_logits(shape, n, 2);
      const auto n_finite = static_cast<double>(
          std::count_if(logits.begin(), logits.end(), [](float l) { return l > -kInf; }));
      if (n_finite < 2) continue;
      for (const auto& [t, range, exponent] :
           {std::tuple{0.8, 0.5, 1.0}, {1.0, 2.0, 1.0}, {0.6, 0.2, 2.5}, {1.0, 1.0, 0.0}}) {
        const double share = std::min(1.0, entropy(logits) / std::log(n_finite));
        const double least = std::max(0.0, t - range);
        const double expected = least + (t + range - least) * std::pow(share, exponent);
        if (expected < 1e-3) continue;  // the entropy's error would be too large a part of it
        Candidates c = load(logits);
        dynamic_temperature(c, t, range, exponent);
        ASSERT_EQ(c.size(), n);
        // The entropy is off by the error of its weights, times ln n at most; T by the slope.
        const double entropy_error = 2.0 * mass_error(logits) * (1.0 + std::log(n_finite));
        const double slope = (t + range - least) * std::max(1.0, exponent);
        const double error = entropy_error * slope / expected + 0x1p-22;
        for (size_t i = 0; i < n; ++i) {
          if (logits[i] == -kInf) continue;
          ASSERT_NEAR(c.logits()[i] * expected, logits[i], std::abs(logits[i]) * error)
              << describe(shape, n) << ", T " << t << ", range " << range << ", token " << i;
        }
      }
    }
  }
}

TEST(DynamicTemperature, WithoutARangeIsTemperature) {
  Candidates c = load(std::vector<float>{1, 2, 3});
  dynamic_temperature(c, 0.5, 0.0, 1.0);
  EXPECT_EQ(c.logits()[2], 6.0f);
}

TEST(DynamicTemperature, GoesFromItsLeastToItsMost) {
  // Equal logits have all the entropy there can be: T + range.
  Candidates flat = load(std::vector<float>{3, 3, 3, -kInf});
  dynamic_temperature(flat, 0.5, 0.25, 1.0);
  EXPECT_NEAR(flat.logits()[0], 3.0 / 0.75, 1e-5);
  // A certain token has none: T - range, and where that is 0, the best alone.
  Candidates sure = load(std::vector<float>{300, 1, 2});
  dynamic_temperature(sure, 0.75, 0.25, 1.0);
  EXPECT_EQ(sure.logits()[0], 600.0f);
  dynamic_temperature(sure, 0.25, 0.5, 1.0);
  EXPECT_EQ(ids_of(sure), (Ids{0}));
  // One token alone is left as it is.
  Candidates one = load(std::vector<float>{3, -kInf});
  dynamic_temperature(one, 0.5, 0.25, 1.0);
  EXPECT_EQ(one.logits()[0], 3.0f);
}

}  // namespace
}  // namespace sluice::sampler::test
