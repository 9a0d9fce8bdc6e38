// How fast a placement will be: a cost model of bytes, rates and waits. It proposes; what decides
// between close candidates is a trial on the machine itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>

#include "policy/plan/gpu_costs.h"
#include "policy/plan/hardware.h"
#include "policy/plan/locality_curve.h"
#include "policy/plan/pricing.h"

namespace sluice::policy {

// As many barriers of a thread pool.
constexpr double kCpuLayerSeconds = 20e-6;
// Operations/s of one CPU core in prefill, where nobody has measured: 0.12 T on two cores were
// measured with llama.cpp.
constexpr double kCpuCoreOps = 0.06e12;

// Rows of the steps that are recorded.
inline constexpr std::array kWidths = {1, 2, 4, 8, 16};

struct Speed {
  double decode = 0.0;    // tokens/s of all sequences, Workload::forecast_depth() into their texts
  double prefill = 0.0;   // tokens/s of a full chunk, as deep
  double hit_rate = 0.0;  // of the routed calls of all layers that run on the GPU
};

// Of a decode step, besides its layers and its output: submitting it, reading its results, choosing
// the token.
double step_seconds(const Hardware& hardware, bool uses_gpu);

// Tokens/s of decode steps of such rows; predict() has it for a row of each of the workload's
// sequences.
double predict_rows(const ModelShape& model, const Hardware& hardware, const Workload& work,
                    const Placement& place, const LocalityCurve& locality, const DecodeRows& rows);

Speed predict(const ModelShape& model, const Hardware& hardware, const Workload& work,
              const Placement& place, const LocalityCurve& locality);

}  // namespace sluice::policy
