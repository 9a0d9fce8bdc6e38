// Small writes and copies in a stream's order: see stream_words.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/host_words.cuh"
#include "backend/cuda/stream_words.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kCopyThreads = 64;     // many small blocks: all reads of a copy are under way at once
constexpr size_t kMostBytes = 1024;  // of one launch; parameters may have 4 KB

constexpr uint64_t kMostCopied = 1 << 20;  // more takes a copy engine less time

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

// 16 bytes a thread; the last few of them one by one. The fence is for kernels that were launched
// ahead of their turn and read the bytes before they wait for the kernel in front of them.
__global__ void copy_bytes_kernel(unsigned char* to, const unsigned char* from, int n) {
  const int at = static_cast<int>(blockIdx.x * kCopyThreads + threadIdx.x) * 16;
  if (at + 16 <= n) {
    *reinterpret_cast<uint4*>(to + at) = __ldcv(reinterpret_cast<const uint4*>(from + at));
  } else {
    for (int i = at; i < n; ++i) to[i] = __ldcv(from + i);
  }
  __threadfence();
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

bool is_small_copy(const std::byte* to, const std::byte* from, uint64_t n_bytes) {
  const auto places = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from);
  return n_bytes > 0 && n_bytes <= kMostCopied && places % 16 == 0;
}

void copy_bytes(std::byte* to, const std::byte* from, uint64_t n_bytes, cudaStream_t stream) {
  constexpr uint64_t kPerBlock = 16 * kCopyThreads;
  const auto n_blocks = static_cast<unsigned>((n_bytes + kPerBlock - 1) / kPerBlock);
  copy_bytes_kernel<<<n_blocks, kCopyThreads, 0, stream>>>(
      reinterpret_cast<unsigned char*>(to), reinterpret_cast<const unsigned char*>(from),
      static_cast<int>(n_bytes));
  CHECK_CUDA(cudaGetLastError());
}

cudaError_t load_kernels() {
  cudaFuncAttributes attributes;
  return cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(set_word_kernel));
}

}  // namespace sluice::backend::cuda
