// What blocks of a cluster do together, from sm_90 on: begin, and send each other numbers through
// shared memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

// Between the two lies what a block can do before the others have begun, and opened what is sent
// to.
__device__ __forceinline__ void arrive_in_cluster() {
  asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory");
}
__device__ __forceinline__ void await_cluster() {
  asm volatile("barrier.cluster.wait;" ::: "memory");
}

// Memory of each block that any of them may send to, and the barrier that counts the bytes.
class SentNumbers {
 public:
  __device__ __forceinline__ SentNumbers(float* memory, uint64_t& barrier)
      : memory_(address(memory)), barrier_(address(&barrier)) {}

  // By one thread, before arrive_in_cluster().
  __device__ __forceinline__ void open(int n_bytes) const {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(barrier_) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier_),
                 "r"(n_bytes)
                 : "memory");
  }
  // To place `at` of a block's memory.
  __device__ __forceinline__ void send(unsigned block, int at, float value) const {
    asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(
                     in_block(memory_ + 4 * at, block)),
                 "r"(__float_as_uint(value)), "r"(in_block(barrier_, block))
                 : "memory");
  }
  __device__ __forceinline__ void send(unsigned block, int at, const float4& values) const {
    asm volatile(
        "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, "
        "[%5];" ::"r"(in_block(memory_ + 4 * at, block)),
        "r"(__float_as_uint(values.x)), "r"(__float_as_uint(values.y)),
        "r"(__float_as_uint(values.z)), "r"(__float_as_uint(values.w)),
        "r"(in_block(barrier_, block))
        : "memory");
  }
  __device__ __forceinline__ void await() const {
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; "
          "selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(barrier_)
          : "memory");
    }
  }

 private:
  static __device__ __forceinline__ unsigned address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }
  static __device__ __forceinline__ unsigned in_block(unsigned own, unsigned block) {
    unsigned other;
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(other) : "r"(own), "r"(block));
    return other;
  }

  unsigned memory_, barrier_;
};

#endif

}  // namespace sluice::backend::cuda
