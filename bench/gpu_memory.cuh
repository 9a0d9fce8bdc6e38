// Device memory of the GPU benchmarks; it lives as long as the program.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cuda/cuda_error.h"

namespace sluice::backend::cuda {

template <typename T>
T* device(size_t n) {
  void* p = nullptr;
  CHECK_CUDA(cudaMalloc(&p, (n * sizeof(T) + 255) / 256 * 256));
  CHECK_CUDA(cudaMemset(p, 0, n * sizeof(T)));
  return static_cast<T*>(p);
}
template <typename T>
T* device(const std::vector<T>& values) {
  T* const p = device<T>(values.size());
  CHECK_CUDA(cudaMemcpy(p, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice));
  return p;
}

}  // namespace sluice::backend::cuda
