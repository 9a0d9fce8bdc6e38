// Small writes in a stream's order: see stream_words.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/host_words.cuh"
#include "backend/cuda/stream_words.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 128;
constexpr size_t kMostBytes = 1024;  // of one launch; parameters may have 4 KB

struct Bytes {
  unsigned char value[kMostBytes];
};

__device__ __forceinline__ bool has_failed(const uint32_t* fault) {
  return *static_cast<const volatile uint32_t*>(fault) != 0;
}

__global__ void set_word_kernel(uint64_t* word, uint64_t value, const uint32_t* fault) {
  if (has_failed(fault)) return;
  __threadfence_system();
  release(word, value);
}

// One thread, which looks about four million times a second.
__global__ void await_word_kernel(const uint64_t* word, uint64_t value, const uint64_t* ended,
                                  const uint32_t* fault) {
  while (acquired(word) != value && acquired(ended) == 0 && !has_failed(fault)) {
    pause(250);
  }
}

__global__ void write_bytes_kernel(unsigned char* to, const __grid_constant__ Bytes bytes, int n,
                                   const uint32_t* fault) {
  if (has_failed(fault)) return;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) to[i] = bytes.value[i];
}

}  // namespace

void set_word(uint64_t* word, uint64_t value, const uint32_t* fault, cudaStream_t stream) {
  set_word_kernel<<<1, 1, 0, stream>>>(word, value, fault);
  CHECK_CUDA(cudaGetLastError());
}

void await_word(const uint64_t* word, uint64_t value, const uint64_t* ended, const uint32_t* fault,
                cudaStream_t stream) {
  await_word_kernel<<<1, 1, 0, stream>>>(word, value, ended, fault);
  CHECK_CUDA(cudaGetLastError());
}

void write_bytes(std::byte* to, std::span<const std::byte> value, const uint32_t* fault,
                 cudaStream_t stream) {
  for (size_t at = 0; at < value.size(); at += kMostBytes) {
    const auto some = value.subspan(at, std::min(kMostBytes, value.size() - at));
    Bytes bytes;
    std::memcpy(bytes.value, some.data(), some.size());
    write_bytes_kernel<<<1, kThreads, 0, stream>>>(reinterpret_cast<unsigned char*>(to + at), bytes,
                                                   static_cast<int>(some.size()), fault);
    CHECK_CUDA(cudaGetLastError());
  }
}

cudaError_t load_kernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(set_word_kernel));
}

}  // namespace sluice::backend::cuda
