// Asks the driver what cuda_probe.h wants to know.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/cuda_probe.h"

#include <cuda_runtime_api.h>

#include "backend/cuda/stream_words.h"
#include "backend/device.h"

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

}  // namespace

CudaProbe probe_gpu(int index) {
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
  p.has_unified_addresses = card.unifiedAddressing != 0 && card.canMapHostMemory != 0;
  if (10 * p.major + p.minor < kLeastCapability) return p;
  cudaError_t status = cudaSetDevice(index);
  if (status == cudaSuccess) status = load_kernels();
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
