// XTC: who is excluded, and when nobody is.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/xtc.h"

#include <gtest/gtest.h>

#include "sampler/sampler.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Ids = std::set<size_t>;

Ids after(const std::vector<double>& p_of, float threshold, size_t min_keep = 0) {
  std::vector<float> logits;
  for (const double p : p_of) logits.push_back(p > 0 ? static_cast<float>(std::log(p)) : -kInf);
  return kept(logits, [&](Candidates& c) { xtc(c, threshold, min_keep); });
}

TEST(Xtc, LeavesTheLeastOfTheTopChoicesAndAllBelow) {
  const std::vector<double> p = {0.2, 0.4, 0.1, 0.3};
  EXPECT_EQ(after(p, 0.09f), (Ids{2}));
  EXPECT_EQ(after(p, 0.19f), (Ids{0, 2}));
  EXPECT_EQ(after(p, 0.29f), (Ids{0, 2, 3}));
  EXPECT_EQ(after(p, 0.39f), (Ids{0, 1, 2, 3})) << "one top choice alone stays";
  EXPECT_EQ(after(p, 0.5f), (Ids{0, 1, 2, 3}));
}

TEST(Xtc, DropsNothingThatWouldLeaveTooFew) {
  const std::vector<double> p = {0.2, 0.4, 0.1, 0.3};
  EXPECT_EQ(after(p, 0.19f, 2), (Ids{0, 2}));
  EXPECT_EQ(after(p, 0.19f, 3), (Ids{0, 1, 2, 3}));
}

TEST(Xtc, OfEqualChoicesTheLastStays) {
  EXPECT_EQ(after({0.3, 0.3, 0.3, 0.1}, 0.2f), (Ids{2, 3}));
  EXPECT_EQ(after({0.5, 0.5}, 0.4f), (Ids{1}));
}

TEST(Xtc, NeverLeavesOnlyWhatCannotBeDrawn) {
  EXPECT_EQ(after({0.6, 0.4, 0.0}, 0.0f), (Ids{1}));
  EXPECT_EQ(after({0.6, 1e-39, 0.4}, 0.0f), (Ids{1})) << "the weight underflows, the token counts";
  EXPECT_EQ(after({1.0}, 0.0f), (Ids{0}));
}

// Two tokens can reach a threshold of one half, so it is not off yet; above that none can.
TEST(Xtc, IsOffAboveOneHalf) {
  for (const float threshold : {0.5f, 0.51f}) {
    SamplerOptions options{.temp = 1.0f, .xtc_probability = 1.0f, .xtc_threshold = threshold};
    options.seed = 1;
    options.stages = parse_stage_letters("x");
    Sampler sampler(options, 2);
    sampler.sample(std::vector<float>{1.0f, 1.0f});
    EXPECT_EQ(sampler.candidates().size(), threshold == 0.5f ? 1u : 2u);
  }
}

TEST(Xtc, AgreesWithItsDefinitionOnAllShapes) {
  size_t n_cut = 0;
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<float> logits = make_logits(shape, n, 3);
      const std::vector<double> p = softmax(logits);
      const std::vector<size_t> order = ranked(logits);
      const double error = mass_error(logits);
      for (const float threshold : {0.5f, 0.1f, 0.01f, 1e-4f}) {
        size_t n_above = 0;
        bool close = false;  // too near to call
        for (const double x : p) {
          n_above += x >= threshold ? 1 : 0;
          close |= std::abs(x - threshold) < threshold * error + x * weight_error(std::log(x));
        }
        if (close) continue;
        Ids expected = first(order, n);
        for (size_t i = 0; i + 1 < n_above; ++i) expected.erase(order[i]);
        n_cut += n - expected.size();
        EXPECT_EQ(kept(logits, [&](Candidates& c) { xtc(c, threshold, 0); }), expected)
            << describe(shape, n) << ", threshold " << threshold;
      }
    }
  }
  EXPECT_GT(n_cut, 100u);
}

}  // namespace
}  // namespace sluice::sampler::test
