// The document behind `sluice simulate --report`: hit-rate curves, a speed map over VRAM and link,
// hits by layer, and the frontier where copying experts overtakes computing them in place. The page
// draws it (report/page.h); what stands in it is decided here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/files/json_text.h"
#include "cli/simulate/simulate_runs.h"

namespace sluice::cli {

// Of all policies and of the first machine of `options`, whose contenders and budgets are not read.
Json report_document(const TraceSummary& summary, const policy::RoutingTrace& trace,
                     const SimulateOptions& options, const Progress& progress);

}  // namespace sluice::cli
