// Asks the driver what cuda_probe.h wants to know.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_probe.h"

#include <cuda_runtime_api.h>

#include <cstdlib>
#include <map>
#include <mutex>

#include "backend/cuda/driver_memory.h"
#include "backend/cuda/stream_words.h"
#include "backend/device.h"
#include "base/units.h"

namespace sluice::backend::cuda {
namespace {

std::string words(cudaError_t status) {
  static_cast<void>(cudaGetLastError());
  return cudaGetErrorString(status);
}

// Whether the code is at fault, not the device.
bool is_of_code(cudaError_t status) {
  return status == cudaErrorNoKernelImageForDevice || status == cudaErrorInvalidDeviceFunction ||
         status == cudaErrorInvalidKernelImage || status == cudaErrorInvalidPtx ||
         status == cudaErrorUnsupportedPtxVersion;
}

// Where the driver does not say what it is: more than the 530 MiB of an H200.
constexpr uint64_t kUsualOwnBytes = 640 * kMiB;

// The first time a GPU is asked for, this makes the context and loads all kernels; the difference
// is what they take for as long as the process lives.
cudaError_t make_context(int index, uint64_t* own_bytes) {
  static std::mutex mutex;
  static std::map<int, uint64_t> known;
  const std::lock_guard lock(mutex);
  const auto found = known.find(index);
  const uint64_t before = found == known.end() ? driver_free_bytes(index) : 0;
  cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) status = load_kernels();
  if (status != cudaSuccess) return status;
  if (found != known.end()) {
    *own_bytes = found->second;
    return status;
  }
  const uint64_t after = driver_free_bytes(index);
  *own_bytes = after > 0 && before > after ? before - after : kUsualOwnBytes;
  known[index] = *own_bytes;
  return status;
}

}  // namespace

CudaProbe probe_gpu(int index) {
  // Kernels take memory when they are loaded: at once, or free memory would mean nothing. The
  // driver reads this when it is first called.
  static_cast<void>(setenv("CUDA_MODULE_LOADING", "EAGER", /*overwrite=*/0));
  CudaProbe p;
  p.index = index;
  p.runtime_version = CUDART_VERSION;
  static_cast<void>(cudaDriverGetVersion(&p.driver_version));
  const cudaError_t counted = cudaGetDeviceCount(&p.n_devices);
  if (counted != cudaSuccess) {
    p.n_devices = 0;
    if (counted != cudaErrorNoDevice) p.count_error = words(counted);
    static_cast<void>(cudaGetLastError());
  }
  if (index < 0 || index >= p.n_devices) return p;
  cudaDeviceProp card{};
  if (const cudaError_t status = cudaGetDeviceProperties(&card, index); status != cudaSuccess) {
    p.device_error = words(status);
    return p;
  }
  p.card = card.name;
  p.major = card.major;
  p.minor = card.minor;
  p.n_bytes = card.totalGlobalMem;
  int has_timeout = 0;
  static_cast<void>(cudaDeviceGetAttribute(&has_timeout, cudaDevAttrKernelExecTimeout, index));
  p.has_display = has_timeout != 0;
  p.has_unified_addresses = card.unifiedAddressing != 0 && card.canMapHostMemory != 0;
  if (10 * p.major + p.minor < kLeastCapability) return p;
  cudaError_t status = make_context(index, &p.own_bytes);
  if (status == cudaSuccess) {
    size_t n_free = 0, n_all = 0;
    status = cudaMemGetInfo(&n_free, &n_all);
    p.free_bytes = n_free;
  }
  if (status != cudaSuccess) (is_of_code(status) ? p.kernel_error : p.device_error) = words(status);
  return p;
}

}  // namespace sluice::backend::cuda

namespace sluice::backend {

GpuList list_gpus() {
  std::vector<cuda::CudaProbe> probes = {cuda::probe_gpu(0)};
  for (int i = 1; i < probes.front().n_devices; ++i) probes.push_back(cuda::probe_gpu(i));
  return cuda::list_of(probes);
}

}  // namespace sluice::backend
