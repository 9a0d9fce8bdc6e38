// See driver_memory.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/driver_memory.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <array>
#include <memory>

namespace sluice::backend::cuda {
namespace {

// As nvml.h declares them; not every toolkit has that header.
struct NvmlMemory {
  unsigned long long total, free, used;
};
using NvmlDevice = struct NvmlDeviceState*;
constexpr int kNvmlSuccess = 0;

struct CloseLibrary {
  void operator()(void* library) const { static_cast<void>(dlclose(library)); }
};

template <typename Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

}  // namespace

uint64_t driver_free_bytes(int index) {
  std::array<char, 32> bus_id = {};
  if (cudaDeviceGetPCIBusId(bus_id.data(), bus_id.size(), index) != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    return 0;
  }
  const std::unique_ptr<void, CloseLibrary> library(dlopen("libnvidia-ml.so.1", RTLD_LAZY));
  if (!library) return 0;
  const auto init = find<int()>(library.get(), "nvmlInit_v2");
  const auto shutdown = find<int()>(library.get(), "nvmlShutdown");
  const auto device_of =
      find<int(const char*, NvmlDevice*)>(library.get(), "nvmlDeviceGetHandleByPciBusId_v2");
  const auto memory_of =
      find<int(NvmlDevice, NvmlMemory*)>(library.get(), "nvmlDeviceGetMemoryInfo");
  if (!init || !shutdown || !device_of || !memory_of || init() != kNvmlSuccess) return 0;
  NvmlDevice device = nullptr;
  NvmlMemory memory = {};
  const bool is_known = device_of(bus_id.data(), &device) == kNvmlSuccess &&
                        memory_of(device, &memory) == kNvmlSuccess;
  shutdown();
  return is_known ? memory.free : 0;
}

}  // namespace sluice::backend::cuda
