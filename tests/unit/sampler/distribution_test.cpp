// How often tokens are drawn: chi-square against the probabilities that the formulas give. Seeds
// are fixed; the bound is one that a right sampler passes for all but one seed in a million.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sampler/sampler.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

constexpr int kDraws = 20000;

// The value that chi-square exceeds with probability 1e-6, by Wilson and Hilferty: its cube root
// is about normal, and 4.753 is the normal quantile.
double chi_square_bound(double degrees) {
  const double v = 2.0 / (9.0 * degrees);
  return degrees * std::pow(1.0 - v + 4.753 * std::sqrt(v), 3.0);
}

struct Fit {
  double chi_square = 0.0;
  double bound = 0.0;
  bool outsiders = false;  // a token was drawn whose probability is 0
};

// Tokens of which less than 10 are expected share a cell.
Fit fit(const std::vector<int>& drawn, const std::vector<double>& p, int n) {
  Fit result;
  double rare_expected = 0.0, rare_drawn = 0.0, cells = 0.0;
  const auto add = [&](double count, double expected) {
    result.chi_square += (count - expected) * (count - expected) / expected;
    ++cells;
  };
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0.0) {
      result.outsiders |= drawn[i] > 0;
    } else if (p[i] * n >= 10.0) {
      add(drawn[i], p[i] * n);
    } else {
      rare_expected += p[i] * n;
      rare_drawn += drawn[i];
    }
  }
  if (rare_expected >= 10.0) add(rare_drawn, rare_expected);
  result.bound = chi_square_bound(std::max(1.0, cells - 1.0));
  return result;
}

std::vector<int> draw(const SamplerOptions& options, const std::vector<float>& logits, int n) {
  Sampler sampler(options, static_cast<int>(logits.size()));
  std::vector<int> drawn(logits.size());
  for (int i = 0; i < n; ++i) ++drawn[static_cast<size_t>(sampler.sample(logits))];
  return drawn;
}

void expect_drawn(const SamplerOptions& options, const std::vector<float>& logits,
                  const std::vector<double>& p, const std::string& what) {
  const Fit f = fit(draw(options, logits, kDraws), p, kDraws);
  EXPECT_LT(f.chi_square, f.bound) << what;
  EXPECT_FALSE(f.outsiders) << what;
}

SamplerOptions plain(uint32_t seed, const char* stages) {
  return {.temp = 1.0f, .seed = seed, .stages = parse_stage_letters(stages)};
}

// softmax(l / t) over the first n of an order.
std::vector<double> truncated(const std::vector<float>& logits, const std::vector<size_t>& order,
                              size_t n, double t = 1.0) {
  std::vector<double> p(logits.size());
  double sum = 0.0;
  for (size_t i = 0; i < n; ++i) {
    sum += p[order[i]] = std::exp((logits[order[i]] - largest(logits)) / t);
  }
  for (double& x : p) x /= sum;
  return p;
}

TEST(Distribution, ThePlainDrawFollowsTheSoftmax) {
  uint32_t seed = 1;
  for (const size_t n : {2, 10, 300}) {
    for (const Shape shape :
         {Shape::smooth, Shape::steep, Shape::ties, Shape::equal, Shape::holes}) {
      const std::vector<float> logits = make_logits(shape, n, 11);
      expect_drawn(plain(seed++, ""), logits, softmax(logits), describe(shape, n));
    }
  }
}

TEST(Distribution, TemperatureSharpensAndFlattens) {
  const std::vector<float> logits = make_logits(Shape::smooth, 100, 12);
  uint32_t seed = 20;
  for (const float t : {0.3f, 0.8f, 1.7f}) {
    SamplerOptions options = plain(seed++, "t");
    options.temp = t;
    expect_drawn(options, logits, truncated(logits, ranked(logits), 100, t), std::to_string(t));
  }
}

// What the bound is worth: neighbouring temperatures are told apart.
TEST(Distribution, AWrongTemperatureWouldBeSeen) {
  const std::vector<float> logits = make_logits(Shape::smooth, 100, 12);
  SamplerOptions options = plain(30, "t");
  options.temp = 0.8f;
  const std::vector<int> drawn = draw(options, logits, kDraws);
  for (const double wrong : {0.7, 0.9, 1.0}) {
    const Fit f = fit(drawn, truncated(logits, ranked(logits), 100, wrong), kDraws);
    EXPECT_GT(f.chi_square, f.bound) << wrong;
  }
}

TEST(Distribution, TruncationLeavesTheRestInProportion) {
  const std::vector<float> logits = make_logits(Shape::holes, 300, 13);
  const std::vector<size_t> order = ranked(logits);
  const std::vector<double> p = softmax(logits);

  SamplerOptions top_k = plain(40, "k");
  top_k.top_k = 5;
  expect_drawn(top_k, logits, truncated(logits, order, 5), "top_k");

  SamplerOptions top_p = plain(41, "p");
  top_p.top_p = 0.9f;
  size_t n = 0;
  for (double sum = 0.0; sum < 0.9f;) sum += p[order[n++]];
  ASSERT_GT(n, 2u);
  expect_drawn(top_p, logits, truncated(logits, order, n), "top_p");

  SamplerOptions min_p = plain(42, "m");
  min_p.min_p = 0.02f;
  n = 0;
  while (p[order[n]] >= 0.02f * p[order[0]]) ++n;
  ASSERT_GT(n, 2u);
  expect_drawn(min_p, logits, truncated(logits, order, n), "min_p");
}

TEST(Distribution, TheDefaultChainIsItsStagesInOrder) {
  const std::vector<float> logits = make_logits(Shape::holes, 500, 14);
  const std::vector<size_t> order = ranked(logits);
  const std::vector<double> of_40 = truncated(logits, order, 40);
  size_t n = 0;
  for (double sum = 0.0; sum < 0.95f;) sum += of_40[order[n++]];
  while (of_40[order[n - 1]] < 0.05f * of_40[order[0]]) --n;
  ASSERT_GT(n, 2u);
  ASSERT_LT(n, 40u);
  expect_drawn({.seed = 50}, logits, truncated(logits, order, n, 0.8), "defaults");
}

TEST(Distribution, XtcExcludesAsOftenAsAsked) {
  std::vector<float> logits;
  for (const double p : {0.5, 0.3, 0.15, 0.05}) logits.push_back(static_cast<float>(std::log(p)));
  SamplerOptions options = plain(60, "x");
  options.xtc_threshold = 0.1f;
  for (const double q : {0.25, 0.5, 1.0}) {
    options.xtc_probability = static_cast<float>(q);
    // Excluded, 0.15 and 0.05 are left: 3/4 and 1/4.
    const std::vector<double> p = {0.5 * (1 - q), 0.3 * (1 - q), 0.15 * (1 - q) + 0.75 * q,
                                   0.05 * (1 - q) + 0.25 * q};
    expect_drawn(options, logits, p, std::to_string(q));
    options.seed = *options.seed + 1;
  }
}

TEST(Distribution, MirostatDrawsInProportionFromWhatItLeaves) {
  const std::vector<float> logits = make_logits(Shape::holes, 300, 15);
  const std::vector<size_t> order = ranked(logits);
  SamplerOptions options = plain(70, "");
  options.mirostat = 2;
  options.mirostat_tau = 2.0f;  // never accepted, so mu stays at 4 bits
  const std::vector<double> p = softmax(logits);
  size_t n = 0;
  while (p[order[n]] >= 1.0 / 16.0) ++n;
  ASSERT_GT(n, 1u);
  expect_drawn(options, logits, truncated(logits, order, n), "mirostat 2");
}

TEST(Distribution, AMaskLeavesTheRestInProportion) {
  const std::vector<float> logits = make_logits(Shape::smooth, 128, 16);
  const std::vector<uint64_t> words = {random_bits(1, 1), random_bits(1, 2)};
  const TokenMask mask{words};
  std::vector<float> masked = logits;
  for (size_t i = 0; i < masked.size(); ++i) {
    if (!mask.allows(static_cast<TokenId>(i))) masked[i] = -kInf;
  }
  Sampler sampler(plain(80, ""), 128);
  std::vector<int> drawn(128);
  for (int i = 0; i < kDraws; ++i) ++drawn[static_cast<size_t>(sampler.sample(logits, &mask))];
  const Fit f = fit(drawn, softmax(masked), kDraws);
  EXPECT_LT(f.chi_square, f.bound);
  EXPECT_FALSE(f.outsiders);
}

// The numbers themselves, and that one does not tell the next.
TEST(Distribution, TheGeneratorIsUniformInPairs) {
  Uniform uniform(90);
  std::vector<int> cells(100);
  double last = uniform();
  for (int i = 0; i < 100000; ++i) {
    const double next = uniform();
    ASSERT_TRUE(next >= 0.0 && next < 1.0);
    ++cells[static_cast<size_t>(last * 10) * 10 + static_cast<size_t>(next * 10)];
    last = next;
  }
  const Fit f = fit(cells, std::vector<double>(100, 0.01), 100000);
  EXPECT_LT(f.chi_square, f.bound);
}

}  // namespace
}  // namespace sluice::sampler::test
