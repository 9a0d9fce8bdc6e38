// See this_machine.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/plan/this_machine.h"

#include <algorithm>

#include "base/cpu_topology.h"
#include "base/error.h"
#include "base/free_memory.h"
#include "cli/files/user_folders.h"
#include "sluice/device.h"

namespace sluice::cli {
namespace {

// Where desktop memory ends; measured on two-channel DDR5. (Server cores: 10.6 on one, 118 on
// sixteen.)
constexpr double kMostGbps = 60.0;

}  // namespace

policy::Hardware this_machine() {
  policy::Hardware machine;
  machine.n_cores = this_machines_cpus().default_threads();
  const FreeMemory memory = free_memory();
  machine.ram_free = memory.bytes;
  machine.ram_source = memory.in_container ? "free in this container" : "free on this machine";
  machine.cpu_gbps = measured_cpu_gbps(machine_path());
  machine.cpu_source = "measured";
  if (machine.cpu_gbps == 0.0) {
    machine.cpu_gbps = std::min(kGbpsPerCore * machine.n_cores, kMostGbps);
    machine.cpu_source = cat("estimated: ", kGbpsPerCore, " GB/s a core, at most ", kMostGbps);
  }
  return machine;
}

}  // namespace sluice::cli
