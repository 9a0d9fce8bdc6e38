// The reasons of cuda_probe.h in words.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_probe.h"
#include "base/error.h"
#include "base/units.h"

namespace sluice::backend::cuda {
namespace {

// Windows come and go: what they may take while a session lasts.
constexpr uint64_t kDisplayBytes = 512 * kMiB;

std::string version(int v) { return cat(v / 1000, ".", v % 1000 / 10); }

std::string capability(const CudaProbe& p) { return cat("sm_", p.major, p.minor); }

std::string driver_problem(const CudaProbe& p) {
  if (p.driver_version == 0) {
    return cat("this machine has no NVIDIA driver; install one for CUDA ",
               version(p.runtime_version), " or later, or use the CPU");
  }
  if (p.driver_version / 1000 < p.runtime_version / 1000) {
    return cat("the NVIDIA driver is too old: it runs CUDA ", version(p.driver_version),
               ", this build needs CUDA ", p.runtime_version / 1000,
               ".0; update the driver, or use the CPU");
  }
  return {};
}

}  // namespace

std::string problem_of(const CudaProbe& p) {
  if (std::string problem = driver_problem(p); !problem.empty()) return problem;
  if (!p.count_error.empty()) {
    return cat("the NVIDIA driver cannot be used: ", p.count_error, "; see what nvidia-smi says");
  }
  if (p.n_devices == 0) {
    return "the NVIDIA driver sees no GPU; see what nvidia-smi and CUDA_VISIBLE_DEVICES say";
  }
  if (p.index < 0 || p.index >= p.n_devices) {
    return cat("there is no GPU ", p.index, ": this machine has ", p.n_devices,
               p.n_devices == 1 ? ", GPU 0" : cat(", GPU 0 to ", p.n_devices - 1));
  }
  if (10 * p.major + p.minor < kLeastCapability) {
    return cat("GPU ", p.index, " (", p.card, ", ", capability(p),
               ") is too old: sm_75 (Turing) is the least; use the CPU");
  }
  if (!p.has_unified_addresses) {
    return cat("GPU ", p.index, " (", p.card,
               ") does not see the host's memory at the host's addresses; use the CPU");
  }
  if (!p.device_error.empty()) {
    return cat("GPU ", p.index, " (", p.card, ") cannot be used: ", p.device_error,
               "; start the program again, or see what nvidia-smi says");
  }
  if (!p.kernel_error.empty()) {
    return cat("this build has no kernels for GPU ", p.index, " (", p.card, ", ", capability(p),
               "): ", p.kernel_error, "; build with -DCMAKE_CUDA_ARCHITECTURES=", p.major, p.minor);
  }
  return {};
}

GpuList list_of(std::span<const CudaProbe> probes) {
  GpuList list;
  for (const CudaProbe& p : probes) {
    std::string problem = problem_of(p);
    if (p.n_devices == 0) return {{}, std::move(problem)};
    list.gpus.push_back({.index = p.index,
                         .name = p.card,
                         .vram_bytes = p.n_bytes,
                         .vram_free = p.free_bytes + p.own_bytes,
                         .vram_overhead = p.own_bytes + (p.has_display ? kDisplayBytes : 0),
                         .problem = std::move(problem)});
  }
  return list;
}

std::string name_of(const CudaProbe& p) {
  return cat("GPU ", p.index, ": ", p.card, " (", capability(p), "), ", format_bytes(p.n_bytes),
             ", driver for CUDA ", version(p.driver_version));
}

}  // namespace sluice::backend::cuda
