// Belady's optimum, against every possible sequence of decisions on tiny traces.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/belady.h"

#include <bit>
#include <map>

#include "base/random.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

// The most hits that any choice of residents can have: after a step it may keep any n_slots of what
// was resident and what the step used. Experts of all layers are bits of one mask.
int most_hits(const std::vector<uint32_t>& used, int n_slots) {
  std::map<uint32_t, int> best = {{0u, 0}};  // residents -> hits so far
  for (const uint32_t step : used) {
    std::map<uint32_t, int> next;
    for (const auto& [resident, hits] : best) {
      const int now = hits + std::popcount(resident & step);
      const uint32_t all = resident | step;
      for (uint32_t kept = all;; kept = (kept - 1) & all) {
        if (std::popcount(kept) <= n_slots) {
          int& most = next[kept];
          most = std::max(most, now);
        }
        if (kept == 0) break;
      }
    }
    best = std::move(next);
  }
  int most = 0;
  for (const auto& [resident, hits] : best) most = std::max(most, hits);
  return most;
}

TEST(Belady, NoDecisionsHitMore) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RoutingTrace trace{{"tiny", generator_shape(2, 4, 2)}, {}};
    std::vector<uint32_t> used;
    for (uint64_t s = 0; s < 9; ++s) {
      std::vector<std::vector<int>> layers(2);
      uint32_t mask = 0;
      for (size_t l = 0; l < 2; ++l) {
        const uint64_t bits = random_bits(seed, 2 * s + l);
        const int a = static_cast<int>(bits % 4);
        const int b = static_cast<int>((bits >> 8) % 4);
        layers[l] = a == b ? std::vector{a} : std::vector{a, b};
        for (const int e : layers[l]) mask |= 1u << (4 * l + static_cast<size_t>(e));
      }
      trace.steps.push_back(step_of(layers));
      used.push_back(mask);
    }
    for (const int n_slots : {0, 1, 2, 3, 5, 8}) {
      const ReplayResult result = replay_belady(trace, n_slots / 8.0, {});
      EXPECT_EQ(static_cast<int>(result.n_hits), most_hits(used, n_slots))
          << "seed " << seed << ", " << n_slots << " slots";
    }
  }
}

TEST(Belady, CopiesOnlyWhatIsUsedAgain) {
  RoutingTrace trace{{"tiny", generator_shape(1, 8, 1, 10)}, {}};
  for (const int e : {0, 1, 2, 0, 3, 4, 0, 5}) trace.steps.push_back(step_of({{e}}));
  const ReplayResult result = replay_belady(trace, 1.0 / 8, {});
  EXPECT_EQ(result.n_hits, 2u);
  EXPECT_EQ(result.n_copies, 1u);
  EXPECT_EQ(result.copied_bytes, 10u);
}

TEST(Belady, IsNeverBelowAPolicy) {
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(8, 32, 4), .n_decode = 300, .topic_steps = 100});
  for (const double percent : {3.0, 12.5, 40.0, 75.0}) {
    const double most = belady_percent(trace, percent);
    EXPECT_GE(most, belady_percent(trace, percent, Sharing::per_layer));
    for (const PolicyKind policy : kPolicies) {
      EXPECT_GE(most, hit_percent(trace, policy, percent)) << policy_name(policy);
    }
  }
}

// The hits that tools/traces/replay.py counts, which was written from the definitions alone.
TEST(Belady, HitsAsOftenAsAnotherProgramSays) {
  struct Known {
    const char* trace;
    double percent;
    uint64_t lru, belady;
  };
  constexpr Known kKnown[] = {{"demo-attn", 12.5, 6909, 13614},  {"demo-attn", 25, 12011, 19266},
                              {"demo-attn", 37.5, 17014, 22643}, {"demo-attn", 50, 20272, 25043},
                              {"demo-hybrid", 12.5, 1493, 2969}, {"demo-hybrid", 25, 2513, 4253},
                              {"demo-hybrid", 37.5, 3425, 5030}, {"demo-hybrid", 50, 4196, 5631}};
  for (const Known& known : kKnown) {
    const RoutingTrace trace = shipped(known.trace);
    EXPECT_EQ(replay_at(trace, PolicyKind::lru, known.percent).n_hits, known.lru)
        << known.trace << ", " << known.percent << " %";
    EXPECT_EQ(replay_belady(trace, known.percent / 100, {}, Sharing::per_layer).n_hits,
              known.belady)
        << known.trace << ", " << known.percent << " %";
  }
}

// How the recorded Qwen3-30B-A3B trace is known to behave, from another independent replay.
TEST(Belady, ReproducesTheKnownFiguresOfALargeModelWhereItsTraceIsThere) {
  const auto qwen = of_large_model("qwen3-30b-a3b");
  if (!qwen) GTEST_SKIP() << "SKIPPED: the large recording is not beside the checkout";
  const std::vector<std::array<double, 3>> known = {
      {6.25, 43, 62}, {12.5, 61, 78}, {18.75, 73, 87}, {25, 82, 92}, {37.5, 92, 96}};
  for (const auto& [percent, lru, best] : known) {
    EXPECT_NEAR(hit_percent(*qwen, PolicyKind::lru, percent), lru, 0.6) << percent;
    EXPECT_NEAR(belady_percent(*qwen, percent, Sharing::per_layer), best, 0.6) << percent;
  }
}

}  // namespace
}  // namespace sluice::policy::test
