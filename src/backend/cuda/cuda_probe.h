// What was found out about a GPU before it is used, and why it cannot be. No CUDA here: the reasons
// can be tested on machines that have none of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/machine.h"

namespace sluice::backend::cuda {

// Versions as CUDA has them: 1000 major + 10 minor.
struct CudaProbe {
  int index = 0;            // the GPU that was asked for
  int runtime_version = 0;  // that this build has
  int driver_version = 0;   // that the driver can run; 0: there is no driver
  int n_devices = 0;
  std::string count_error;  // why they could not be counted, in CUDA's words

  // Of that GPU, where there is one.
  std::string card;
  int major = 0, minor = 0;  // compute capability
  uint64_t n_bytes = 0;
  uint64_t free_bytes = 0;
  uint64_t own_bytes = 0;    // that CUDA took for this process: its context and all kernels
  bool has_display = false;  // or so it seems: kernels may not run for long
  bool has_unified_addresses = true;
  std::string kernel_error;  // why this build's kernels do not load, in CUDA's words
  std::string device_error;  // why it does nothing at all, likewise
};

constexpr int kLeastCapability = 75;

// Of the machine that runs this.
CudaProbe probe_gpu(int index);

// In one line, with what to do; empty where the GPU is usable.
std::string problem_of(const CudaProbe& probe);

// Of all of them, as they were probed one by one; without any there is still one probe, which says
// why.
GpuList list_of(std::span<const CudaProbe> probes);

// The card, its memory and the driver.
std::string name_of(const CudaProbe& probe);

}  // namespace sluice::backend::cuda
