// Steps of several rows, as the cost model sees them: how many experts they read, and that more
// rows are never slower.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>

#include "policy/plan/pricing_speed.h"
#include "unit/policy/planner_shapes.h"

namespace sluice::policy::planner_test {
namespace {

constexpr LocalityCurve::Choice kEightOf128{8, 128};

TEST(DistinctExperts, OfOneRowAreThoseItUses) {
  std::vector<uint32_t> uses(128);
  for (size_t i = 0; i < uses.size(); ++i) uses[i] = static_cast<uint32_t>(10 + i);
  RoutingProfile profile(1, 128);
  profile.add_run(uses, 1200);
  for (const LocalityCurve& curve : {LocalityCurve::typical(), LocalityCurve::of(profile)}) {
    for (const double resident : {0.0, 0.1, 0.25, 0.6, 1.0}) {
      const LocalityCurve::Distinct one = curve.distinct(resident, {1, 1}, kEightOf128);
      EXPECT_NEAR(one.hits, 8 * curve.hits(resident), 1e-9) << resident;
      EXPECT_NEAR(one.sum(), 8.0, 1e-9) << resident;
    }
  }
}

// 128 (1 - (1 - 8/128)^rows), whatever is in VRAM; the calls that miss are spread over what is not.
TEST(DistinctExperts, OfSeveralRowsAreChosenEvenlyWithoutAProfile) {
  const LocalityCurve curve = LocalityCurve::typical();
  for (const auto& [n_rows, n] : {std::pair(2, 15.5), {8, 51.62}, {16, 82.42}}) {
    for (const double resident : {0.0, 0.25, 1.0}) {
      const LocalityCurve::Distinct all = curve.distinct(resident, {n_rows, 1}, kEightOf128);
      EXPECT_NEAR(all.sum(), n, 0.01) << n_rows;
      const double n_outside = 128 * (1.0 - resident);
      const double missed = 8 * (1.0 - curve.hits(resident));
      if (resident < 1.0) {
        EXPECT_NEAR(all.misses, n_outside * (1.0 - std::pow(1.0 - missed / n_outside, n_rows)),
                    0.01)
            << n_rows;
      } else {
        EXPECT_EQ(all.misses, 0.0);
      }
    }
  }
}

// A profile in which 8 experts are always chosen: more rows need no others, and none is missing
// where these are in VRAM.
TEST(DistinctExperts, OfSequencesShareTheSlots) {
  const LocalityCurve curve = LocalityCurve::typical();
  double before = 0.0;
  for (const int n : {1, 2, 4, 8}) {
    const LocalityCurve::Distinct all = curve.distinct(0.25, {8, n}, kEightOf128);
    EXPECT_NEAR(all.sum(), 51.62, 0.01);
    EXPECT_GT(all.misses, before) << n << " sequences";
    before = all.misses;
    EXPECT_EQ(curve.distinct(1.0, {8, n}, kEightOf128).misses, 0.0);
  }
  EXPECT_LT(before, 0.75 * 51.62) << "no worse than slots filled by chance";
}

TEST(DistinctExperts, OfSeveralRowsAreThoseThatAProfileNames) {
  std::vector<uint32_t> uses(128, 0);
  std::fill_n(uses.begin() + 40, 8, 300);
  RoutingProfile profile(1, 128);
  profile.add_run(uses, 300);
  const LocalityCurve curve = LocalityCurve::of(profile);
  const LocalityCurve::Distinct half = curve.distinct(0.03125, {16, 16}, kEightOf128);
  EXPECT_NEAR(half.hits, 4.0, 0.01);
  EXPECT_NEAR(half.misses, 4.0, 0.01);
  EXPECT_NEAR(curve.distinct(0.0625, {16, 16}, kEightOf128).hits, 8.0, 0.01);
  EXPECT_NEAR(curve.distinct(0.0625, {16, 16}, kEightOf128).misses, 0.0, 0.01);
}

TEST(PredictedWidths, OneRowAndTheWorkloadsRowsAreWhatIsPredicted) {
  const ModelShape model = qwen3_30b();
  const LocalityCurve locality = LocalityCurve::typical();
  const Placement place{48, std::vector<int>(48, 40)};
  Workload work{.n_ctx = 4096};
  EXPECT_DOUBLE_EQ(predict_rows(model, desktop(), work, place, locality, {1, 1}),
                   predict(model, desktop(), work, place, locality).decode);
  work.n_sequences = 8;
  EXPECT_DOUBLE_EQ(predict_rows(model, desktop(), work, place, locality, {8, 8}),
                   predict(model, desktop(), work, place, locality).decode);
  EXPECT_EQ(work.decode_rows(), 8);
  work.n_sequences = 40;  // no more rows than one submission has
  EXPECT_EQ(work.decode_rows(), 16);
}

// Rows of one sequence, in every mode, on any machine.
TEST(PredictedWidths, MoreRowsAreNeverSlower) {
  int n_compared = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed);
    const ModelShape model = random_shape(random);
    const Plan plan = make_plan(model, random_hardware(random), {.prefill_chunk = 512});
    for (const Forecast& f : plan.forecasts) {
      if (f.speed.decode == 0.0) continue;
      EXPECT_DOUBLE_EQ(f.by_width[0], f.speed.decode);
      for (size_t i = 1; i < f.by_width.size(); ++i) {
        EXPECT_GE(f.by_width[i], 0.995 * f.by_width[i - 1])
            << "seed " << seed << ", " << mode_name(f.mode) << ", " << kWidths[i] << " rows";
        ++n_compared;
      }
    }
  }
  EXPECT_GT(n_compared, 2000);
}

// Sequences share weights and slots, not keys and values: a plan for several is for wider steps.
TEST(PredictedWidths, SequencesReachThePlan) {
  const Plan one = make_plan(qwen3_30b(), desktop(), {.prefill_chunk = 512});
  const Plan eight = make_plan(qwen3_30b(), desktop(), {.n_sequences = 8, .prefill_chunk = 512});
  EXPECT_EQ(eight.price.vram.kv, 8 * one.price.vram.kv);
  EXPECT_LT(eight.forecast().speed.decode, eight.forecast().by_width[3]);  // of one text
  EXPECT_GT(eight.forecast().speed.decode, one.forecast().speed.decode);
  EXPECT_NEAR(eight.step_seconds(), 8 / eight.forecast().speed.decode, 1e-12);
}

}  // namespace
}  // namespace sluice::policy::planner_test
