// How a kernel is launched: with the shared memory it asks for, and where the card can, before the
// one in front of it has ended (it waits by itself: warp.cuh).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

template <typename Args>
void launch(void (*kernel)(Args), dim3 grid, int n_threads, size_t shared_bytes, const Launch& how,
            const Args& args) {
  const auto* const function = reinterpret_cast<const void*>(kernel);
  CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(shared_bytes)));
  CHECK_CUDA(cudaFuncSetAttribute(function, cudaFuncAttributePreferredSharedMemoryCarveout,
                                  cudaSharedmemCarveoutMaxShared));
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(n_threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = how.stream;
  config.attrs = &attribute;
  config.numAttrs = how.overlaps ? 1 : 0;
  CHECK_CUDA(cudaLaunchKernelEx(&config, kernel, args));
}

}  // namespace sluice::backend::cuda
