// The turning frequencies and the magnitude of a rope, against the spec's section 3.2 in float64.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "model/config.h"

namespace sluice::model::test {
namespace {

// theta_j = base^(-2j/n_rot)
double plain(const RopeConfig& rope, size_t j) {
  return std::pow(double{rope.base}, -2.0 * static_cast<double>(j) / rope.n_rot);
}

// corr(b) = n_rot ln(ctx/(2 pi b)) / (2 ln base); ramp_j = 1 - clamp((j-low)/max(0.001, high-low));
// theta' = theta/s (1-ramp) + theta ramp
double yarn(const RopeConfig& rope, size_t j) {
  const auto corr = [&](double b) {
    return rope.n_rot * std::log(rope.n_ctx_original / (2 * M_PI * b)) /
           (2 * std::log(double{rope.base}));
  };
  const double low = std::max(0.0, std::floor(corr(32)));
  const double high = std::min(rope.n_rot - 1.0, std::ceil(corr(1)));
  const double place = (static_cast<double>(j) - low) / std::max(0.001, high - low);
  const double ramp = 1 - std::min(1.0, std::max(0.0, place));
  return plain(rope, j) / rope.factor * (1 - ramp) + plain(rope, j) * ramp;
}

// float64 arithmetic rounded once: half an ulp and a little.
void expect_frequencies(const RopeConfig& rope, double (*formula)(const RopeConfig&, size_t),
                        const std::string& what) {
  const std::vector<float> got = rope_frequencies(rope);
  ASSERT_EQ(got.size(), static_cast<size_t>(rope.n_rot / 2)) << what;
  for (size_t j = 0; j < got.size(); ++j) {
    const double expected = formula(rope, j);
    const double bound = 1.001 * 0x1p-24 * expected;
    EXPECT_NEAR(got[j], expected, bound) << what << ", pair " << j;
  }
}

TEST(RopeFrequencies, WithoutScalingIgnoreTheFactor) {
  for (const float base : {10000.0f, 1e6f, 1e7f, 150000.0f}) {
    for (const int n_rot : {2, 16, 64, 128}) {
      RopeConfig rope{.n_rot = n_rot, .base = base, .factor = 4.0f, .n_ctx_original = 4096};
      expect_frequencies(rope, plain, "none");
      EXPECT_EQ(rope_frequencies(rope)[0], 1.0f);
    }
  }
}

TEST(RopeFrequencies, LinearScalingDividesAllOfThem) {
  for (const float factor : {1.0f, 2.0f, 4.0f, 3.7f, 0.5f}) {
    const RopeConfig rope{.n_rot = 64,
                          .base = 10000.0f,
                          .scaling = RopeScaling::linear,
                          .factor = factor,
                          .n_ctx_original = 2048};
    expect_frequencies(
        rope, [](const RopeConfig& r, size_t j) { return plain(r, j) / r.factor; }, "linear");
  }
}

TEST(RopeFrequencies, YarnIsItsFormula) {
  struct Case {
    const char* name;
    int n_rot;
    float base, factor;
    int n_ctx;
  };
  for (const Case& c : {
           Case{"gpt-oss", 64, 150000.0f, 32.0f, 4096},
           Case{"qwen3", 128, 1e6f, 4.0f, 32768},
           Case{"a ramp that starts at pair 0", 64, 1e6f, 8.0f, 100},
           Case{"a context shorter than one turn", 64, 10000.0f, 4.0f, 4},
           Case{"a ramp that ends beyond the last pair", 8, 4.0f, 2.0f, 1 << 20},
           Case{"a factor of one", 64, 10000.0f, 1.0f, 2048},
       }) {
    expect_frequencies({.n_rot = c.n_rot,
                        .base = c.base,
                        .scaling = RopeScaling::yarn,
                        .factor = c.factor,
                        .n_ctx_original = c.n_ctx},
                       yarn, c.name);
  }
}

// By hand for gpt-oss: corr(32) = 8.09 and corr(1) = 17.4, so pairs up to 8 keep their frequency,
// pairs from 18 on are divided by 32, and pair 13 stands in the middle.
TEST(RopeFrequencies, YarnKeepsFastPairsAndDividesSlowOnes) {
  const RopeConfig rope{.n_rot = 64,
                        .base = 150000.0f,
                        .scaling = RopeScaling::yarn,
                        .factor = 32.0f,
                        .n_ctx_original = 4096};
  const std::vector<float> got = rope_frequencies(rope);
  for (size_t j = 0; j < 32; ++j) {
    if (j > 8 && j < 18) continue;
    const double share = j <= 8 ? 1.0 : 1.0 / 32;
    EXPECT_NEAR(got[j] / plain(rope, j), share, 1e-6 * share) << "pair " << j;
  }
  EXPECT_NEAR(got[13] / plain(rope, 13), 0.5 + 0.5 / 32, 1e-6);
}

// 1 + 0.1 ln s in f32: the logarithm, two products and a sum, each within an ulp.
TEST(RopeMagnitude, GrowsWithYarnsFactorAlone) {
  for (const float factor : {1.0f, 4.0f, 32.0f, 40.0f}) {
    for (const float attn_factor : {1.0f, 0.8f}) {
      RopeConfig rope{.n_rot = 64, .factor = factor, .attn_factor = attn_factor};
      for (const RopeScaling scaling : {RopeScaling::none, RopeScaling::linear}) {
        rope.scaling = scaling;
        EXPECT_EQ(rope_magnitude(rope), attn_factor) << factor;
      }
      rope.scaling = RopeScaling::yarn;
      const double expected = attn_factor * (1 + 0.1 * std::log(double{factor}));
      EXPECT_NEAR(rope_magnitude(rope), expected, 4 * 0x1p-23 * expected) << factor;
    }
  }
  EXPECT_NEAR(rope_magnitude({.scaling = RopeScaling::yarn, .factor = 32.0f}), 1.34657, 1e-5)
      << "the spec's number for gpt-oss";
}

}  // namespace
}  // namespace sluice::model::test
