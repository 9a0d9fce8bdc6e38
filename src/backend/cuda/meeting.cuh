// The word of a meeting (meeting.h) in a card's memory, and what one thread of a block does there.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/meeting.h"

namespace sluice::backend::cuda {

class MetInMemory {
 public:
  __device__ __forceinline__ explicit MetInMemory(unsigned long long* word) : word_(word) {}

  __device__ __forceinline__ uint64_t add(uint64_t what) { return atomicAdd(word_, what); }
  __device__ __forceinline__ uint64_t set_bits(uint32_t bits) {
    return atomicOr(word_, static_cast<unsigned long long>(bits));
  }
  __device__ __forceinline__ uint64_t clear_bits(uint32_t bits) {
    return atomicAnd(word_, ~static_cast<unsigned long long>(bits));
  }
  __device__ __forceinline__ uint64_t load() {
    uint64_t now = 0;
#if __CUDA_ARCH__ >= 700
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(now) : "l"(word_) : "memory");
#endif
    return now;
  }

 private:
  unsigned long long* word_;
};

// By one thread, when the block's writes are done (a barrier is behind them). What the blocks that
// came wrote can be read behind a barrier, where a share is the block's.
__device__ __forceinline__ uint32_t meet_blocks(unsigned long long* word, int index, int n,
                                                int n_polls) {
  __threadfence();
  MetInMemory met(word);
  const uint32_t shares = meet(met, index, n, n_polls);
  __threadfence();
  return shares;
}

}  // namespace sluice::backend::cuda
