// Machine and its rates, as the public header shows them, and what a measurement makes of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sluice/machine.h"

namespace sluice {

// Before the first measurement: 0, and -1 where 0 is a figure, say that nothing is known.
inline MachineRates unmeasured_rates() {
  return {.link_gbps = 0.0,
          .cpu_gbps = 0.0,
          .gpu_gbps = 0.0,
          .handshake_us = 0.0,
          .experts_us = -1.0,
          .launch_us = -1.0,
          .readback_us = -1.0,
          .sampling_us = -1.0,
          .copy_interference = -1.0,
          .cpu_gops = 0.0,
          .cpu_kv_gbps = 0.0,
          .cpu_kv_prompt_gbps = 0.0,
          .graphs_mib = -1.0};
}

// What was measured takes the place of what was assumed; the rest stays.
inline void use_measured(const MachineRates& measured, Machine& machine) {
  const auto use = [](double figure, double& assumed, std::string* source) {
    if (figure <= 0.0) return;
    assumed = figure;
    if (source) *source = "measured";
  };
  use(measured.cpu_gbps, machine.cpu_gbps, &machine.cpu_source);
  use(measured.cpu_gops, machine.cpu_gops, nullptr);
  use(measured.cpu_kv_gbps, machine.cpu_kv_gbps, nullptr);
  use(measured.cpu_kv_prompt_gbps, machine.cpu_kv_prompt_gbps, nullptr);
  use(measured.gpu_gbps, machine.gpu_gbps, &machine.gpu_source);
  use(measured.link_gbps, machine.link_gbps, &machine.gpu_source);
  use(measured.handshake_us, machine.handshake_us, nullptr);
  for (const auto figure :
       {&MachineRates::experts_us, &MachineRates::launch_us, &MachineRates::readback_us,
        &MachineRates::sampling_us, &MachineRates::copy_interference, &MachineRates::graphs_mib}) {
    if (measured.*figure >= 0.0) machine.*figure = measured.*figure;
  }
}

}  // namespace sluice
