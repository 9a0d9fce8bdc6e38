// Runs the tests of a benchmark with one number of threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/bench/bench_report.h"

namespace sluice::cli {

struct BenchPlan {
  std::vector<BenchTest> tests;  // without results, by rising depth
  int n_repeats = 0;
  uint64_t seed = 0;
  SessionOptions session;  // with room for all tests
};

// Measures the machine, runs the plan, and measures the machine again.
// The tokens are random, the same for the same seed; the model routes them as it likes. Every test
// runs once before its first timed repeat. `load` gives the model for a number of threads.
BenchRun run_bench(const BenchPlan& plan, int n_threads,
                   const std::function<Model(int n_threads)>& load);

}  // namespace sluice::cli
