// What `sluice simulate` found, as JSON and as a table for people.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/files/json_text.h"
#include "cli/simulate/simulate_runs.h"

namespace sluice::cli {

// An array with one object per row.
Json rows_json(std::span<const SimulatedRow> rows);

void print_rows(const TraceSummary& trace, std::span<const SimulatedRow> rows);

}  // namespace sluice::cli
