// A request to the host's workers, by the threads of one block: pairs and inputs go to the mailbox,
// in mapped memory, and a word says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/find_missing.h"
#include "backend/cuda/host_words.cuh"

namespace sluice::backend::cuda {

template <typename T>
__device__ __forceinline__ void copy_words(T* to, const T* from, int64_t n) {
#pragma unroll 1
  for (int64_t i = threadIdx.x; i < n; i += blockDim.x) to[i] = __ldcg(from + i);
}

// All rows of the input, in every format there is.
__device__ __forceinline__ void post_input(const FindMissing& p, int n_live) {
  const ExpertInputView& to = p.mailbox.input;
  const int64_t n = n_live * p.a.n_cols;
  if (p.a.q) {
    copy_words(reinterpret_cast<uint4*>(to.q), reinterpret_cast<const uint4*>(p.a.q), n / 16);
    copy_words(to.d, p.a.d, n / 32);
    copy_words(to.y, p.a.y, n / 32);
  }
  if (p.a.f32) copy_words(to.f32, p.a.f32, n);
}

// Whether no answer comes any more: the host's workers may still read the last request.
__device__ __forceinline__ bool is_aborted(const FindMissing& p) {
  return acquired(&p.mailbox.words->answered) == kAborted;
}

// By all threads, when each has written its pairs. A step that was aborted asks nobody, and says
// so.
__device__ __forceinline__ void ask_host(const FindMissing& p, int n_live, int n_pairs, bool asks) {
  if (!asks) {
    if (threadIdx.x == 0) write_fault(&p.mailbox.words->fault, request_of(p.step, p.number));
    return;
  }
  if (threadIdx.x == 0) {
    *p.mailbox.head = {n_pairs, n_live, p.a.f32 != nullptr, p.a.q != nullptr, 0};
  }
  post_input(p, n_live);
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) release(&p.mailbox.words->posted, request_of(p.step, p.number));
}

}  // namespace sluice::backend::cuda
