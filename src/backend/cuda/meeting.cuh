// A place inside a kernel where some of its blocks wait for each other, or find out who comes last.
// Where they wait, all of them must be on the card at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// The counter gains kRound whenever n blocks have met, so nobody resets it: the first block adds
// what the others do not.
class Meeting {
 public:
  static constexpr unsigned kRound = 64;  // a power of two, n at most

  // By one thread of the block, `index` of n, when the block's writes are done (a barrier is
  // behind them). met: 0 before the first launch.
  __device__ __forceinline__ Meeting(unsigned* met, int index, int n) : met_(met) {
    __threadfence();
    const unsigned own = index == 0 ? kRound - static_cast<unsigned>(n) + 1 : 1;
    const unsigned before = atomicAdd(met_, own);
    until_ = (before & -kRound) + kRound;
    is_last_ = before + own == until_;
    __threadfence();
  }

  __device__ __forceinline__ bool is_last() const { return is_last_; }

  // Until all have come; what they wrote can be read behind a barrier.
  __device__ __forceinline__ void await() const {
    unsigned now = 0;
    do {
      asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(now) : "l"(met_) : "memory");
    } while (static_cast<int>(now - until_) < 0);
  }

 private:
  unsigned* met_;
  unsigned until_;
  bool is_last_;
};

}  // namespace sluice::backend::cuda
