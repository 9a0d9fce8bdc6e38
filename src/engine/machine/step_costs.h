// What a decode step costs besides its work, measured: to submit it, until the host sees what it
// gave, and to choose the next token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device.h"

namespace sluice::engine {

struct StepCosts {
  double launch_us = 0.0;
  double readback_us = 0.0;
  double sampling_us = 0.0;
};

// Medians of what fits into so many seconds of real time. Throws as the device does.
StepCosts measure_step_costs(backend::Device& device, double seconds);

// What a device's memory loses to the recordings of steps, in MiB: of every width, with as many
// pieces of work as a step of so many layers has. 0 where recordings take none.
double measure_recordings(backend::Device& device, int n_layers);

}  // namespace sluice::engine
