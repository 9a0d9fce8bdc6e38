// What deciding costs: the expert cache, in processor time a token (begin_step, all touch and
// end_step of the default policy), and a whole replay, on generated traces of 48 layers x 8 of 128
// experts. docs/decisions/0005-expert-cache.md has figures that it printed.
//
//   bench_policy
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "policy/cache/expert_cache.h"
#include "policy/trace/replay.h"
#include "policy/trace/trace_generator.h"

namespace sluice::policy {
namespace {

constexpr size_t kWindow = 20;   // steps
constexpr size_t kLeftOut = 10;  // windows, in which slots are still free
constexpr int kRuns = 3;

double microseconds(std::clock_t from) {
  return 1e6 * static_cast<double>(std::clock() - from) / CLOCKS_PER_SEC;
}

// Processor time per step of each window of steps, the least of a few runs, sorted.
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
        for (int l = 0; l < trace.header.shape.n_layers; ++l) {
          cache.touch(LayerId(l), step.layer(l));
        }
        cache.end_step();
      }
      least[w] = std::min(least[w], microseconds(start) / kWindow);
    }
  }
  least.erase(least.begin(), least.begin() + kLeftOut);
  std::sort(least.begin(), least.end());
  return least;
}

void print_decisions() {
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(48, 128, 8), .n_decode = 600});
  std::printf("%10s %10s %10s %10s %10s\n", "resident", "copy cost", "median/us", "least/us",
              "most/us");
  for (const double percent : {3.0, 6.0, 12.5, 25.0, 60.0}) {
    for (const double copy_cost : {0.0, 0.45}) {
      const std::vector<double> us = windows(trace, percent, copy_cost);
      std::printf("%8.2f %% %10.2f %10.1f %10.1f %10.1f\n", percent, copy_cost, us[us.size() / 2],
                  us.front(), us.back());
    }
  }
}

void print_replay() {
  constexpr size_t kSteps = 6000;
  const RoutingTrace trace =
      generate_trace({.shape = generator_shape(48, 128, 8), .n_decode = 300});
  size_t n_steps = 0;
  const StepSource source = [&](RoutingStep& step) {
    if (n_steps == kSteps) return false;
    step = trace.steps[n_steps++ % trace.steps.size()];
    return true;
  };
  const std::clock_t start = std::clock();
  const ReplayResult result = replay(trace.header.shape, source, {}, 0.25, {});
  std::printf("replay of %zu tokens at 25 %%: %.1f us a token, hit rate %.3f\n", kSteps,
              microseconds(start) / static_cast<double>(kSteps), result.hit_rate());
}

}  // namespace
}  // namespace sluice::policy

int main() {
  sluice::policy::print_decisions();
  sluice::policy::print_replay();
}
