// CUDA's runtime on the emulated card: the card itself, and errors.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdio>

#include "emulated_gpu/memory.h"
#include "emulated_gpu/runtime.h"

namespace sluice::emulated_gpu {
namespace {

thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

int shared_per_block() {
  const int capability = card_size().capability;
  return (capability < 80 ? 64 : capability == 80 ? 163 : capability < 90 ? 99 : 227) << 10;
}

cudaError_t told(cudaError_t status) {
  if (status == cudaSuccess && has_card_fault()) status = cudaErrorIllegalAddress;
  if (status != cudaSuccess) last_error = status;
  return status;
}

}  // namespace sluice::emulated_gpu

using namespace sluice::emulated_gpu;

extern "C" {

cudaError_t cudaGetLastError() {
  const cudaError_t out = last_error;
  last_error = cudaSuccess;
  return has_card_fault() ? cudaErrorIllegalAddress : out;
}
const char* cudaGetErrorString(cudaError_t status) {
  return status == cudaErrorIllegalAddress     ? "a kernel of the emulated GPU failed, see above"
         : status == cudaErrorMemoryAllocation ? "out of memory"
         : status == cudaErrorNoKernelImageForDevice
             ? "no kernel image is available for execution on the device"
         : status == cudaErrorNotReady     ? "device not ready"
         : status == cudaErrorInvalidValue ? "invalid argument"
                                           : "an error of the emulated GPU";
}

cudaError_t cudaGetDeviceCount(int* n) {
  *n = 1;
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return told(cudaSuccess);
}
cudaError_t cudaSetDevice(int device) {
  return told(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char*, int, int) { return told(cudaErrorNotSupported); }
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr what, int) {
  switch (what) {
    case cudaDevAttrComputeCapabilityMajor:
      *value = card_size().capability / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *value = card_size().capability % 10;
      break;
    case cudaDevAttrMultiProcessorCount:
      *value = card_size().n_sms;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *value = shared_per_block();
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *value = shared_per_block() + (card_size().capability < 80 ? 0 : 1024);
      break;
    case cudaDevAttrUnifiedAddressing:
      *value = 1;
      break;
    default:
      *value = 0;
  }
  return told(cudaSuccess);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  *p = {};
  std::snprintf(p->name, sizeof(p->name), "Emulated GPU");
  p->major = card_size().capability / 10;
  p->minor = card_size().capability % 10;
  p->totalGlobalMem = card_size().vram_bytes;
  p->multiProcessorCount = card_size().n_sms;
  p->unifiedAddressing = 1;
  p->canMapHostMemory = 1;
  p->sharedMemPerBlockOptin = shared_per_block();
  return told(cudaSuccess);
}
cudaError_t cudaMemGetInfo(size_t* n_free, size_t* n_all) {
  *n_all = card_size().vram_bytes;
  *n_free = *n_all - std::min<size_t>(device_bytes_used(), *n_all);
  return told(cudaSuccess);
}

}  // extern "C"
