// Turns a failed CUDA call into an Error that quotes the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.h"

namespace sluice::backend::cuda {

inline void check_cuda(cudaError_t status, const char* call) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());  // or a later launch would be blamed for it
  throw Error(Errc::device, cat("CUDA: ", call, ": ", cudaGetErrorString(status)));
}

}  // namespace sluice::backend::cuda

#define CHECK_CUDA(call) ::sluice::backend::cuda::check_cuda((call), #call)
