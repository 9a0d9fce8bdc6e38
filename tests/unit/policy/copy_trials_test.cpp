// Whether promised uses came: trials that keep their promise, that do not, and more of them in a
// step than are followed.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "policy/cache/expert_cache_trials.h"

namespace sluice::policy::test {
namespace {

constexpr int kNewcomer = 0, kVictim = 1;
constexpr double kGain = 0.5;     // uses a step that are promised
constexpr double kResidence = 8;  // steps

// kept() after many steps, in each of which so many choices are made; the newcomer is used in one
// step of `used_every`, the victim never.
double kept_after(int n_steps, int n_choices, int used_every) {
  CopyTrials trials;
  std::vector<uint32_t> uses(2);
  for (int step = 1; step <= n_steps; ++step) {
    uses[kNewcomer] += used_every > 0 && step % used_every == 0;
    trials.begin_step(static_cast<uint64_t>(step), uses);
    for (int i = 0; i < n_choices; ++i) {
      trials.choose(kNewcomer, kVictim, kGain, kResidence, uses);
    }
  }
  return trials.kept();
}

TEST(CopyTrials, BeginWithAQuarter) { EXPECT_DOUBLE_EQ(CopyTrials().kept(), 0.25); }

// The start values stand for 100 uses of which a quarter came, and half of that is forgotten in 180
// steps: 2,000 steps with 64 promised uses each leave nothing of it.
TEST(CopyTrials, LearnTheShareOfThePromisedUsesThatCame) {
  EXPECT_NEAR(kept_after(2000, 64, 2), 1.0, 0.02) << "one use in two steps, as promised";
  EXPECT_NEAR(kept_after(2000, 64, 4), 0.5, 0.02) << "half of it";
  EXPECT_NEAR(kept_after(2000, 64, 0), 0.0, 0.02) << "never";
}

// One choice in four is followed: here, of eight in a step, one of a newcomer that keeps what was
// promised and one of a newcomer that is never used.
TEST(CopyTrials, EachIsJudgedByItsOwnExperts) {
  CopyTrials trials;
  std::vector<uint32_t> uses(4);
  for (uint64_t step = 1; step <= 2000; ++step) {
    uses[0] += step % 2;
    trials.begin_step(step, uses);
    for (int i = 0; i < 8; ++i) {
      trials.choose(i < 4 ? 0 : 2, i < 4 ? 1 : 3, kGain, kResidence, uses);
    }
  }
  EXPECT_NEAR(trials.kept(), 0.5, 0.02);
}

// Only some are followed; the others must not take their places.
TEST(CopyTrials, ManyChoicesInAStepChangeNothing) {
  for (const int n_choices : {256, 1000, 5000}) {
    EXPECT_NEAR(kept_after(2000, n_choices, 2), 1.0, 0.02) << n_choices;
    EXPECT_NEAR(kept_after(2000, n_choices, 4), 0.5, 0.02) << n_choices;
  }
}

}  // namespace
}  // namespace sluice::policy::test
