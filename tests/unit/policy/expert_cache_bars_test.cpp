// How good the default policy must be: against every baseline at every budget, on the recorded
// traces and on generated ones, which are always there. The lines it prints are the table of
// docs/decisions/0005-expert-cache.md.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "base/error.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

const std::vector<double> kBudgets = {3, 6.25, 9, 12.5, 18.75, 25, 31, 37.5, 50, 60};

struct Gain {
  double points = 0.0;     // over LRU, mean of budgets from 6 to 38 %
  double gap_share = 0.0;  // of the way from LRU to the ceiling of equal shares, the same mean
};

// Prints a line for each budget; the default may be `slack` points below a baseline.
Gain compare(const RoutingTrace& trace, double slack) {
  Gain gain;
  int n = 0;
  for (const double percent : kBudgets) {
    const double ours = hit_percent(trace, PolicyKind::mixture, percent);
    std::string line = cat(percent, " %: default ", ours);
    for (const PolicyKind policy : kPolicies) {
      if (policy == PolicyKind::mixture) continue;
      const double theirs = hit_percent(trace, policy, percent);
      EXPECT_GE(ours, theirs - slack) << policy_name(policy) << " at " << percent << " %";
      line += cat(", ", policy_name(policy), " ", theirs);
    }
    const double lru = hit_percent(trace, PolicyKind::lru, percent);
    const double ceiling = belady_percent(trace, percent, Sharing::per_layer);
    const double share = (ours - lru) / (ceiling - lru);
    std::printf("%s, belady %.1f; gap closed %.2f\n", line.c_str(), ceiling, share);
    if (percent < 6 || percent > 38) continue;
    gain.points += ours - lru;
    gain.gap_share += share;
    ++n;
  }
  return {gain.points / n, gain.gap_share / n};
}

TEST(ExpertCacheBars, OnRecordedTracesTheDefaultIsBestAndTwoPointsAboveLru) {
  Gain mean;
  for (const std::string& name : kRecorded) {
    SCOPED_TRACE(name);
    const auto trace = recorded(name);
    if (!trace) GTEST_SKIP() << "no recorded traces beside the checkout";
    const Gain gain = compare(*trace, 0.3);
    EXPECT_GE(gain.points, 1.0);
    mean.points += gain.points / 2;
    mean.gap_share += gain.gap_share / 2;
  }
  EXPECT_GE(mean.points, 2.0);
  EXPECT_GE(mean.gap_share, 0.25);
}

TEST(ExpertCacheBars, OnGeneratedTracesToo) {
  Gain mean;
  for (const int topic_steps : {150, 100000}) {
    SCOPED_TRACE(topic_steps);
    const RoutingTrace trace = generate_trace({.shape = generator_shape(16, 128, 8),
                                               .seed = 21,
                                               .n_decode = 700,
                                               .topic_steps = topic_steps});
    const Gain gain = compare(trace, 0.3);
    mean.points += gain.points / 2;
    mean.gap_share += gain.gap_share / 2;
  }
  EXPECT_GE(mean.points, 2.0);
  EXPECT_GE(mean.gap_share, 0.25);
}

}  // namespace
}  // namespace sluice::policy::test
