// How good the default policy must be: against every baseline at every budget, on recorded traces
// (those of the demo models are always there) and on generated ones. The lines it prints are the
// table of docs/decisions/0005-expert-cache.md.
//
// The bars are that page's aims: no baseline is better by more than 0.3 points at any budget, LRU
// is worse by two points in the mean, and a quarter of the way from LRU to the ceiling is gone. 0.3
// points is what chance makes of one hit rate here: the standard error sqrt(0.25 / n) is 0.29
// points for the 29,296 look-ups of demo-attn's decoded tokens, and more for the shorter traces.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

#include "base/error.h"
#include "support/sanitizers.h"
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
  const std::vector<Recording> all = recordings();
  for (const auto& [name, trace] : all) {
    SCOPED_TRACE(name);
    const Gain gain = compare(trace, 0.3);
    EXPECT_GE(gain.points, 1.0);
    mean.points += gain.points / static_cast<double>(all.size());
    mean.gap_share += gain.gap_share / static_cast<double>(all.size());
  }
  EXPECT_GE(mean.points, 2.0);
  EXPECT_GE(mean.gap_share, 0.25);
}

// Between the budgets of the table too. On gpt-oss, whose 64 tokens make 0.02 points of one hit and
// a standard error of 0.1 to 0.3 of such a difference, the aim of 0.3 is missed at two budgets.
TEST(ExpertCacheBars, NoBudgetInBetweenIsMuchWorse) {
  for (const auto& [name, trace] : recordings()) {
    const double one_slot = 100.0 / static_cast<double>(trace.header.shape.n_total());
    const double step = sluice::test::kSanitized ? 2.75 : std::max(0.25, one_slot);
    int n_missed = 0;
    for (double percent = 3.0; percent <= 60.0; percent += step) {
      double best = 0.0;
      for (const PolicyKind policy : kPolicies) {
        if (policy != PolicyKind::mixture) {
          best = std::max(best, hit_percent(trace, policy, percent));
        }
      }
      const double ours = hit_percent(trace, PolicyKind::mixture, percent);
      EXPECT_GE(ours, best - 0.35) << name << " at " << percent << " %";
      n_missed += ours < best - 0.3;
    }
    EXPECT_LE(n_missed, name == "gpt-oss-120b" ? 2 : 0) << name;
  }
}

// The tokens of a recording in any other order: what they use stays, what follows what is gone.
// Frequency is then all there is to know, and trusting recency or likeness costs up to nine points.
TEST(ExpertCacheBars, WhereOnlyFrequencyTellsTheDefaultFollowsIt) {
  for (auto& [name, trace] : recordings()) {
    std::vector<Phase> phases;
    for (const RoutingStep& step : trace.steps) phases.push_back(step.phase);
    std::shuffle(trace.steps.begin(), trace.steps.end(), std::mt19937(1));
    for (size_t i = 0; i < phases.size(); ++i) trace.steps[i].phase = phases[i];
    for (const double percent : kBudgets) {
      const double best = std::max(hit_percent(trace, PolicyKind::lfu, percent),
                                   hit_percent(trace, PolicyKind::dlfu, percent));
      EXPECT_GE(hit_percent(trace, PolicyKind::mixture, percent), best - 0.75)
          << name << " at " << percent << " %";
    }
  }
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

// By how much the default is slower than the fastest baseline, where copies have the machine's own
// prices; over budgets, links and CPUs.
struct Excess {
  double worst = -1.0;
  double mean = 0.0;
};

std::vector<CostModel> machines() {
  std::vector<CostModel> all;
  for (const double link : {6.5, 12.0, 25.0, 52.0}) {
    for (const double cpu : {20.0, 60.0, 120.0}) {
      all.push_back({{.link_gbps = link, .cpu_gbps = cpu}});
    }
  }
  return all;
}

// The fastest baseline's time on each machine. Baselines know no prices, so that one replay of each
// serves all machines.
std::vector<double> best_ms(const RoutingTrace& trace, double percent,
                            std::span<const CostModel> machines) {
  std::vector<double> best(machines.size(), std::numeric_limits<double>::infinity());
  for (const PolicyKind policy : kPolicies) {
    if (policy == PolicyKind::mixture) continue;
    Replay replay(trace.header.shape, {.policy = policy}, percent / 100, machines);
    for (const RoutingStep& step : trace.steps) replay.step(step);
    for (size_t m = 0; m < machines.size(); ++m) {
      best[m] = std::min(best[m], replay.result(m).time.total_ms);
    }
  }
  return best;
}

Excess excess(const RoutingTrace& trace) {
  Excess all;
  int n = 0;
  const std::vector<CostModel> all_machines = machines();
  for (const double percent : {3.0, 6.25, 12.5, 25.0, 37.5, 60.0}) {
    const std::vector<double> best = best_ms(trace, percent, all_machines);
    for (size_t m = 0; m < all_machines.size(); ++m) {
      const CostModel& machine = all_machines[m];
      const CacheOptions prices{.copy_cost = machine.copy_cost(), .wait_cost = machine.wait_cost()};
      const double ours =
          replay(trace.header.shape, steps_of(trace), prices, percent / 100, machine).time.total_ms;
      all.worst = std::max(all.worst, ours / best[m] - 1.0);
      all.mean += ours / best[m] - 1.0;
      ++n;
    }
  }
  all.mean /= n;
  std::printf("slower than the best baseline: %.1f %% at worst, %.1f in the mean\n",
              100 * all.worst, 100 * all.mean);
  return all;
}

TEST(ExpertCacheBars, WithAMachinesOwnPricesTheDefaultIsFasterInTheMean) {
  for (const int topic_steps : {150, 100000}) {
    SCOPED_TRACE(topic_steps);
    const Excess generated = excess(generate_trace({.shape = generator_shape(16, 128, 8),
                                                    .seed = 21,
                                                    .n_decode = 400,
                                                    .topic_steps = topic_steps}));
    EXPECT_LT(generated.mean, -0.03);
  }
  for (const auto& [name, trace] : recordings()) {
    SCOPED_TRACE(name);
    const Excess on_recording = excess(trace);
    // The aim is 0.02 everywhere; gpt-oss's 64 tokens miss it.
    EXPECT_LT(on_recording.worst, name == "gpt-oss-120b" ? 0.05 : 0.02);
    EXPECT_LT(on_recording.mean, 0.0);
  }
}

}  // namespace
}  // namespace sluice::policy::test
