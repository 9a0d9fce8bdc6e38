// What a benchmark and the planner tell each other: which speeds the machine's record predicts
// before anything runs, and the CPU's rates with this model, which are kept there afterwards.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/bench/bench_report.h"
#include "cli/bench/bench_runner.h"
#include "gguf/model_file.h"

namespace sluice::cli {

struct BenchForecast {
  std::vector<double> tokens_per_second;  // of each of the plan's tests, at its own depth
  std::string rates;                      // of the CPU, for people: which, and where they are from
};

// By what the record has; nothing where there is a device: its session predicts.
BenchForecast forecast_tests(const gguf::ModelFile& file, const BenchPlan& plan, int n_threads);

// Only of runs on the CPU alone with the model's own routing (on a device the session measures),
// and of models large enough to speak for others. What cannot be kept is a warning.
void keep_rates(const BenchReport& report, const policy::ModelShape& shape);

}  // namespace sluice::cli
