// Measures what this machine can do, with the model that is about to run on it, in a few seconds of
// real time: each rate alone, and link and cores at the same time, since both read the same
// memory. What is kept of it: machine_record.h; what is made of it: session_plan.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device.h"
#include "base/machine.h"
#include "base/thread_pool.h"
#include "model/model.h"

namespace sluice::engine {

// Each figure is the median of what fits into its share of the time. The device works on the wall's
// clock; what is taken of its memory is given back. What it has no room for stays as in
// unmeasured_rates().
// Experts are chosen as a text would (text_routing.h).
MachineRates calibrate(const model::Model& model, backend::Device& device, ThreadPool& host_threads,
                       double budget_seconds = 2.5);

// The same without experts on the device and without the host's answers, neither of which GPUs have
// yet: their memory's rate is that of plain copies within it.
MachineRates calibrate_gpu(const model::Model& model, backend::Device& device,
                           ThreadPool& host_threads, double budget_seconds = 2.5);

}  // namespace sluice::engine
