// What a benchmark teaches the planner: the CPU's rates with this model, kept in the machine's
// record.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/bench/bench_report.h"
#include "policy/plan/pricing.h"

namespace sluice::cli {

// Only of runs on the CPU alone with the model's own routing (on a device the session measures),
// and of models large enough to speak for others. What cannot be kept is a warning.
void keep_rates(const BenchReport& report, const policy::ModelShape& shape);

}  // namespace sluice::cli
