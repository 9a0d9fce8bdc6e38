// See launch.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.h"

#include "backend/cuda/cuda_error.h"

namespace sluice::backend::cuda {
namespace {

__global__ void built_kernel() {}

// Of which architecture the kernels are: a card also runs what was built for older ones alone, and
// that waits for no kernel before it, and has fewer threads to a block than the launchers think.
int built_for() {
  cudaFuncAttributes found{};
  CHECK_CUDA(cudaFuncGetAttributes(&found, built_kernel));
  return found.ptxVersion;
}

}  // namespace

Launch launch_on(cudaStream_t stream) {
  int device = 0, major = 0, minor = 0;
  Launch how;
  how.stream = stream;
  CHECK_CUDA(cudaGetDevice(&device));
  CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device));
  CHECK_CUDA(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device));
  CHECK_CUDA(cudaDeviceGetAttribute(&how.n_sms, cudaDevAttrMultiProcessorCount, device));
  CHECK_CUDA(
      cudaDeviceGetAttribute(&how.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device));
  CHECK_CUDA(cudaDeviceGetAttribute(&how.shared_per_sm, cudaDevAttrMaxSharedMemoryPerMultiprocessor,
                                    device));
  how.overlaps = how.clusters = major >= 9 && built_for() >= 90;
  how.has_group_products = major == 9 && minor == 0;
  return how;
}

}  // namespace sluice::backend::cuda
