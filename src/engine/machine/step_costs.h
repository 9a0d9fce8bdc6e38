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

}  // namespace sluice::engine
