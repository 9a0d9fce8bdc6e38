// What deciding costs the engine: begin_step, all touch and end_step, for the default policy on a
// generated trace of 48 layers x 8 of 128 experts. docs/decisions/0005-expert-cache.md has the
// figures it prints.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <ctime>

#include "support/sanitizers.h"
#include "unit/policy/traces.h"

namespace sluice::policy::test {
namespace {

#ifdef NDEBUG
constexpr bool kOptimised = !sluice::test::kSanitized;
#else
constexpr bool kOptimised = false;
#endif

constexpr size_t kWindow = 20;  // steps
constexpr int kRuns = 3;

double microseconds(std::clock_t from) {
  return 1e6 * static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
}

// Processor time per step of each window of steps, the least of a few runs: others use the machine
// too. The first steps, in which slots are still free, are left out.
std::vector<double> windows(const RoutingTrace& trace, double percent, double copy_cost) {
  const size_t n_windows = trace.steps.size() / kWindow;
  std::vector<double> least(n_windows, 1e9);
  for (int run = 0; run < kRuns; ++run) {
    ExpertCache cache({.n_experts = trace.header.shape.n_experts,
                       .layers = share_slots(trace.header.shape, percent / 100),
                       .copy_cost = copy_cost});
    for (size_t w = 0; w < n_windows; ++w) {
      const std::clock_t start = std::clock();
      for (size_t s = w * kWindow; s < (w + 1) * kWindow; ++s) {
        const RoutingStep& step = trace.steps[s];
        cache.begin_step(step.phase);
        for (int l = 0; l < trace.header.shape.n_layers; ++l)
          cache.touch(LayerId(l), step.layer(l));
        cache.end_step();
      }
      least[w] = std::min(least[w], microseconds(start) / kWindow);
    }
  }
  least.erase(least.begin(), least.begin() + 10);
  return least;
}

TEST(ExpertCacheSpeed, DecidingTakesLessThanTwentyMicrosecondsAToken) {
  if (!kOptimised) GTEST_SKIP() << "only an optimised build has a speed to judge";
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(48, 128, 8), .n_decode = 600});
  for (const double percent : {3.0, 6.0, 12.5, 25.0, 60.0}) {
    for (const double copy_cost : {0.0, 0.45}) {
      std::vector<double> us = windows(trace, percent, copy_cost);
      std::sort(us.begin(), us.end());
      std::printf("%5.2f %%, copies at %.2f: %.1f us a token, from %.1f to %.1f\n", percent,
                  copy_cost, us[us.size() / 2], us.front(), us.back());
      // Not the median: a busy neighbour slows every run by a third or more.
      EXPECT_LT(us.front(), 20.0) << percent << " % resident";
    }
  }
}

}  // namespace
}  // namespace sluice::policy::test
