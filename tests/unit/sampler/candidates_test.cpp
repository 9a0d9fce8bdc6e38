// The working set: what is loaded, found and kept, and that the order of ids never changes.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/candidates.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "unit/sampler/logits.h"
#include "unit/sampler/reference.h"

namespace sluice::sampler::test {
namespace {

void expect_sound(const Candidates& c, std::span<const float> source, const std::string& what) {
  for (size_t i = 0; i < c.size(); ++i) {
    ASSERT_EQ(c.logits()[i], source[static_cast<size_t>(c.id(i))]) << what << ", place " << i;
    if (i > 0) {
      ASSERT_LT(c.id(i - 1), c.id(i)) << what << ", place " << i;
    }
  }
}

TEST(Candidates, KeepTheBestInTheOrderOfIds) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<float> logits = make_logits(shape, n, 4);
      const std::vector<size_t> order = ranked(logits);
      const auto n_finite = static_cast<size_t>(
          std::count_if(logits.begin(), logits.end(), [](float l) { return l > -kInf; }));
      for (const size_t k : {size_t{2}, size_t{3}, size_t{40}, n - 1, n, n + 1}) {
        if (k < 2) continue;
        Candidates c = load(logits);
        c.keep_best(k);
        const std::string what = describe(shape, n) + ", k " + std::to_string(k);
        // Where all stay there is nothing to do; else what cannot be drawn goes too.
        EXPECT_EQ(ids_of(c), first(order, k >= n ? n : std::min(k, n_finite))) << what;
        expect_sound(c, logits, what);
        if (k / 2 >= c.size()) continue;
        c.keep_best(k / 2);  // and once more, from a list
        EXPECT_EQ(ids_of(c), first(order, std::min(k / 2, n_finite))) << what;
        expect_sound(c, logits, what);
      }
    }
  }
}

// More than one pool's worth above every bar so far.
TEST(Candidates, KeepTheBestOfManyInAnyOrder) {
  std::vector<float> logits(100003);
  for (const float direction : {1.0f, -1.0f}) {
    for (size_t i = 0; i < logits.size(); ++i) logits[i] = direction * static_cast<float>(i / 3);
    for (const size_t k : {1, 40, 300, 5000}) {
      EXPECT_EQ(kept(logits, [&](Candidates& c) { c.keep_best(k); }), first(ranked(logits), k))
          << k << ", direction " << direction;
    }
  }
}

TEST(Candidates, KeepAtLeastIsExactAtTheBar) {
  using Ids = std::set<size_t>;
  const std::vector<float> logits = {1.0f, 2.0f, 3.0f, 2.0f, -kInf, std::nextafter(2.0f, 0.0f)};
  const auto at_least = [&](double bar, size_t min_keep) {
    return kept(logits, [&](Candidates& c) { c.keep_at_least(bar, min_keep); });
  };
  EXPECT_EQ(at_least(2.0, 0), (Ids{1, 2, 3}));
  EXPECT_EQ(at_least(std::nextafter(2.0, 3.0), 0), (Ids{2}));
  EXPECT_EQ(at_least(std::nextafter(2.0, 1.0), 0), (Ids{1, 2, 3}));
  EXPECT_EQ(at_least(3.0, 2), (Ids{1, 2})) << "of equal ones the first";
  EXPECT_EQ(at_least(3.0, 5), (Ids{0, 1, 2, 3, 5})) << "what cannot be drawn goes";
  EXPECT_EQ(at_least(-1e300, 0), (Ids{0, 1, 2, 3, 5}));
}

TEST(Candidates, TheMaskLeavesWhatItAllows) {
  for (const size_t n : {1, 63, 64, 65, 200}) {
    const std::vector<float> logits = make_logits(Shape::smooth, n, 5);
    std::vector<uint64_t> words((n + 63) / 64);
    for (size_t w = 0; w < words.size(); ++w) words[w] = random_bits(6, w);  // also past n
    const TokenMask mask{words};
    Candidates c(n);
    c.load(logits, &mask);
    std::set<size_t> expected;
    for (size_t i = 0; i < n; ++i) {
      if (mask.allows(static_cast<TokenId>(i))) expected.insert(i);
    }
    EXPECT_EQ(ids_of(c), expected) << n;
    expect_sound(c, logits, std::to_string(n));
  }
}

TEST(Candidates, FindsLogitsByIdInAllAndInSome) {
  const std::vector<float> logits = {5, 4, 3, 2, 1, 9};
  Candidates c = load(logits);
  for (int id = 0; id < 6; ++id) EXPECT_EQ(*c.find(id), logits[static_cast<size_t>(id)]);
  c.keep_best(3);  // 0, 1, 5
  EXPECT_EQ(*c.find(0), 5.0f);
  EXPECT_EQ(*c.find(1), 4.0f);
  EXPECT_EQ(*c.find(5), 9.0f);
  for (const int id : {2, 3, 4}) EXPECT_EQ(c.find(id), nullptr) << id;
  EXPECT_EQ(c.best(), 2u) << "the place, not the id";
}

TEST(Candidates, WeightsAreTheSoftmaxOfTheirLogits) {
  for (const Shape shape : kShapes) {
    for (const size_t n : kSizes) {
      const std::vector<float> logits = make_logits(shape, n, 7);
      const std::vector<double> expected = softmax(logits);
      const double most = largest(logits);
      const double total_error = expected_of(logits, weight_error);
      Candidates c = load(logits);
      const double total = c.weigh();
      for (size_t i = 0; i < n; ++i) {
        const double error = weight_error(logits[i] - most) + total_error;
        ASSERT_NEAR(c.weights()[i] / total, expected[i], expected[i] * error + 2e-38)
            << describe(shape, n) << ", token " << i;
      }
    }
  }
}

TEST(Candidates, RefuseWhatIsNoNumber) {
  for (const float broken : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
    for (const size_t at : {0, 17, 99}) {
      std::vector<float> logits(100, 1.0f);
      logits[at] = broken;
      try {
        load(logits);
        FAIL() << broken << " at " << at;
      } catch (const Error& e) {
        EXPECT_EQ(e.code(), Errc::bad_file);
        const std::string text = e.what();
        const std::string where = "token " + std::to_string(at) + " (1 of 100";
        EXPECT_NE(text.find(where), std::string::npos) << text;
      }
    }
  }
}

TEST(CandidatesDeathTest, ExpectTheirVocabularyAndAMaskOfItsSize) {
  Candidates c(65);
  EXPECT_DEATH(c.load(std::vector<float>(64), nullptr), "CHECK");
  const uint64_t word = 1;
  const TokenMask small{{&word, 1}};
  EXPECT_DEATH(c.load(std::vector<float>(65), &small), "CHECK");
}

}  // namespace
}  // namespace sluice::sampler::test
