// How a kernel is launched: with the shared memory it asks for, in clusters of blocks where it
// wants them, and where the card can, before the one in front of it has ended (it waits by itself:
// warp.cuh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

template <typename Args>
void launch(void (*kernel)(Args), dim3 grid, int n_threads, size_t shared_bytes, const Launch& how,
            const Args& args, int cluster = 1) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared));
  cudaLaunchAttribute attributes[2] = {};
  unsigned n_attributes = 0;
  if (how.overlaps) {
    cudaLaunchAttribute& overlap = attributes[n_attributes++];
    overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    overlap.val.programmaticStreamSerializationAllowed = 1;
  }
  if (cluster > 1) {
    cudaLaunchAttribute& size = attributes[n_attributes++];
    size.id = cudaLaunchAttributeClusterDimension;
    size.val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(n_threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = how.stream;
  config.attrs = attributes;
  config.numAttrs = n_attributes;
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace sluice::backend::cuda
