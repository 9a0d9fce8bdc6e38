// What the files of the emulated CUDA runtime (runtime_*.cpp) share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "emulated_gpu/card.h"

namespace sluice::emulated_gpu {

// Keeps an error for cudaGetLastError(); after a fault of a kernel every call has one.
cudaError_t told(cudaError_t status);
EmulatedStream& stream_of(cudaStream_t stream);  // null: the default stream
int shared_per_block();                          // bytes, static and dynamic together

}  // namespace sluice::emulated_gpu
