// Top-k, top-p, min-p, locally typical and top-n-sigma against their definitions in double, on
// every shape of logits.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/truncation.h"

#include <gtest/gtest.h>

#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

using Ids = std::set<size_t>;

template <typename Body>
void for_all_logits(Body&& body) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) body(make_logits(shape, n, n), describe(shape, n));
  }
}

std::vector<float> logs(std::initializer_list<double> probabilities) {
  std::vector<float> out;
  for (const double p : probabilities) out.push_back(static_cast<float>(std::log(p)));
  return out;
}

TEST(TopK, KeepsTheKBestAndAllForNone) {
  const std::vector<float> logits = {1, 4, 2, 4, 3};
  const auto top = [&](int k) { return kept(logits, [&](Candidates& c) { top_k(c, k); }); };
  EXPECT_EQ(top(1), (Ids{1}));
  EXPECT_EQ(top(2), (Ids{1, 3}));
  EXPECT_EQ(top(3), (Ids{1, 3, 4}));
  for (const int k : {0, -1, 5, 6}) EXPECT_EQ(top(k).size(), 5u) << k;
}

TEST(TopP, KeepsTheCrossingToken) {
  const std::vector<float> logits = logs({0.1, 0.4, 0.2, 0.3});
  const auto top = [&](float p, size_t min_keep = 0) {
    return kept(logits, [&](Candidates& c) { top_p(c, p, min_keep); });
  };
  EXPECT_EQ(top(0.0f), (Ids{1}));
  EXPECT_EQ(top(0.39f), (Ids{1}));
  EXPECT_EQ(top(0.41f), (Ids{1, 3}));
  EXPECT_EQ(top(0.69f), (Ids{1, 3}));
  EXPECT_EQ(top(0.71f), (Ids{1, 2, 3}));
  EXPECT_EQ(top(0.91f), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(top(1.0f), (Ids{0, 1, 2, 3}));
  EXPECT_EQ(top(0.1f, 1), (Ids{1}));
  EXPECT_EQ(top(0.1f, 3), (Ids{1, 2, 3}));
  EXPECT_EQ(top(0.1f, 9), (Ids{0, 1, 2, 3}));
}

TEST(TopP, KeepsTheShortestPrefixThatReachesP) {
  for_all_logits([](const std::vector<float>& logits, const std::string& what) {
    const std::vector<size_t> order = ranked(logits);
    const std::vector<double> p_of = softmax(logits);
    const double error = mass_error(logits);
    for (const float p : {0.0f, 0.01f, 0.3f, 0.9f, 0.95f, 0.999f}) {
      const Ids got = kept(logits, [&](Candidates& c) { top_p(c, p, 0); });
      ASSERT_EQ(got, first(order, got.size())) << what << ", p " << p << ": not the best";
      double before = 0.0;
      for (size_t i = 0; i + 1 < got.size(); ++i) before += p_of[order[i]];
      const double reached = before + p_of[order[got.size() - 1]];
      EXPECT_GE(reached, p - error) << what << ", p " << p << ": " << got.size() << " are too few";
      if (got.size() > 1) {
        EXPECT_LT(before, p + error) << what << ", p " << p << ": too many";
      }
    }
  });
}

TEST(MinP, KeepsWhatIsAtLeastPTimesTheBest) {
  for_all_logits([](const std::vector<float>& logits, const std::string& what) {
    const std::vector<size_t> order = ranked(logits);
    for (const float p : {1e-30f, 0.001f, 0.05f, 0.5f, 1.0f}) {
      for (const size_t min_keep : {0, 1, 7}) {
        Ids expected;
        const double bar = largest(logits) + std::log(static_cast<double>(p));
        for (size_t i = 0; i < logits.size(); ++i) {
          if (logits[i] >= bar) expected.insert(i);
        }
        if (expected.size() < min_keep) {
          expected = first(order, min_keep);
          // Where some go, what cannot be drawn goes first.
          if (min_keep < logits.size()) {
            std::erase_if(expected, [&](size_t i) { return logits[i] == -kInf; });
          }
        }
        EXPECT_EQ(kept(logits, [&](Candidates& c) { min_p(c, p, min_keep); }), expected)
            << what << ", p " << p << ", min_keep " << min_keep;
      }
    }
    EXPECT_EQ(kept(logits, [](Candidates& c) { min_p(c, 0.0f, 0); }).size(), logits.size());
  });
}

TEST(Typical, PrefersTheTypicalToTheLikeliest) {
  const auto typical = [](std::initializer_list<double> p_of, float p, size_t min_keep = 0) {
    return kept(logs(p_of), [&](Candidates& c) { typical_p(c, p, min_keep); });
  };
  EXPECT_EQ(typical({0.97, 0.01, 0.01, 0.01}, 0.5f), (Ids{0}));
  // H is 1.33 here, the surprise of 0.4 is 0.92 and that of 0.2 is 1.61.
  EXPECT_EQ(typical({0.4, 0.2, 0.2, 0.2}, 0.5f), (Ids{1, 2, 3}));
  EXPECT_EQ(typical({0.4, 0.2, 0.2, 0.2}, 0.3f), (Ids{1, 2})) << "of equal ones the first";
  EXPECT_EQ(typical({0.4, 0.2, 0.2, 0.2}, 0.0f), (Ids{1}));
  EXPECT_EQ(typical({0.4, 0.2, 0.2, 0.2}, 0.0f, 3), (Ids{1, 2, 3}));
  EXPECT_EQ(typical({0.4, 0.2, 0.2, 0.2}, 1.0f), (Ids{0, 1, 2, 3}));
}

// By the definition itself, with logarithms and entropy.
TEST(Typical, KeepsTheFewestNearTheEntropyThatReachP) {
  for_all_logits([](const std::vector<float>& logits, const std::string& what) {
    const std::vector<double> p_of = softmax(logits);
    const double h = entropy(logits);
    const double most = largest(logits);
    const double error = mass_error(logits);
    // The mean logit is off by what its weights are off, on both sides of the line.
    const double mean_error =
        2.0 * expected_of(logits, [](double d) { return weight_error(d) * std::abs(d); }) +
        error * expected_of(logits, [](double d) { return std::abs(d); });
    // -ln p_i, from that of the best: p_i itself underflows.
    const double best_surprise = -std::log(p_of[ranked(logits)[0]]);
    std::vector<double> scores(logits.size());
    for (size_t i = 0; i < scores.size(); ++i) {
      scores[i] = std::abs(best_surprise + (most - logits[i]) - h);
    }
    for (const float p : {0.0f, 0.2f, 0.6f, 0.95f}) {
      const Ids got = kept(logits, [&](Candidates& c) { typical_p(c, p, 0); });
      double worst = 0.0, best_left = 1e300, mass = 0.0;
      for (size_t i = 0; i < logits.size(); ++i) {
        if (got.contains(i)) {
          mass += p_of[i];
          worst = std::max(worst, scores[i]);
        } else {
          best_left = std::min(best_left, scores[i]);
        }
      }
      const double score_error = 2.0 * mean_error + 1e-12 + worst * 0x1p-22;
      EXPECT_LE(worst, best_left + score_error) << what << ", p " << p;
      EXPECT_GE(mass, p - error) << what << ", p " << p << ": " << got.size() << " are too few";
      // Of those as good as the worst, the likeliest may have been the last one needed.
      double most_of_worst = 0.0;
      for (const size_t i : got) {
        if (scores[i] >= worst - score_error) most_of_worst = std::max(most_of_worst, p_of[i]);
      }
      if (got.size() > 1) {
        EXPECT_LT(mass - most_of_worst, p + error) << what << ", p " << p << ": too many";
      }
    }
  });
}

TEST(TopNSigma, KeepsWhatIsWithinNDeviationsOfTheBest) {
  for_all_logits([](const std::vector<float>& logits, const std::string& what) {
    const double most = largest(logits);
    double n = 0.0, sum = 0.0, squares = 0.0;
    for (const float l : logits) {
      if (l == -kInf) continue;
      n += 1.0;
      sum += l;
    }
    for (const float l : logits) squares += l > -kInf ? (l - sum / n) * (l - sum / n) : 0.0;
    const double sigma = std::sqrt(squares / n);
    for (const float times : {0.5f, 1.0f, 2.0f, 50.0f}) {
      const double bar = most - times * sigma;
      // Sums of n terms in another order.
      const double error = n * 0x1p-50 * times * (std::abs(sum / n) + sigma + std::abs(bar));
      const Ids got = kept(logits, [&](Candidates& c) { top_n_sigma(c, times, 0); });
      for (size_t i = 0; i < logits.size(); ++i) {
        if (std::abs(logits[i] - bar) <= error && logits[i] != most) continue;
        ASSERT_EQ(got.contains(i), logits[i] >= bar)
            << what << ", n " << times << ", token " << i << ": " << logits[i] << ", bar " << bar;
      }
    }
  });
}

TEST(TopNSigma, IsOffAtZeroAndBelow) {
  const std::vector<float> logits = logs({0.1, 0.2, 0.3, 0.4});
  const auto within = [&](float n, size_t min_keep = 0) {
    return kept(logits, [&](Candidates& c) { top_n_sigma(c, n, min_keep); });
  };
  EXPECT_EQ(within(-1.0f).size(), 4u);
  EXPECT_EQ(within(0.0f).size(), 4u);
  EXPECT_EQ(within(1.0f), (Ids{2, 3})) << "sigma is 0.52; 0.3 is 0.29 below 0.4, and 0.2 is 0.69";
  EXPECT_EQ(within(1.0f, 3), (Ids{1, 2, 3}));
}

}  // namespace
}  // namespace sluice::sampler::test
