// A warp's ring of slots in shared memory, through which it streams weights: request() some bytes
// into a slot, later wait() for them. From sm_90 on one bulk copy a slot, on sm_80 to 89 cp.async
// by all lanes, both counted by a barrier in shared memory; on sm_75 plain loads.
//
// Copies cover whole lines of 128 bytes (one that begins inside a line is cut into 64-byte
// requests; Q6_K over the link 47.4 -> 50.8 GB/s, spike of the decode kernels), so memory must be
// readable from the line a weight begins in to the end of the line it ends in.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/ring_size.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

class WeightRing {
 public:
  // Of a warp among those of a block, whose slots and barriers stand side by side.
  __device__ __forceinline__ WeightRing(uint8_t* slots, uint8_t* barriers, const RingSize& size,
                                        int warp)
      : WeightRing(slots + warp * size.n_slots * size.slot_size, size.slot_size,
                   reinterpret_cast<uint64_t*>(barriers) + warp * size.n_slots, size.n_slots) {}

  // slots: [n_slots] of slot_size bytes each, 128-aligned; barriers: [n_slots].
  __device__ __forceinline__ WeightRing(uint8_t* slots, int slot_size, uint64_t* barriers,
                                        int n_slots)
      : slots_(slots), slot_size_(slot_size), barriers_(shared_address(barriers)), n_(n_slots) {
#if __CUDA_ARCH__ >= 800
    if (threadIdx.x % kWarp == 0) {
      const int arrivals = __CUDA_ARCH__ >= 900 ? 1 : kWarp;
      for (int i = 0; i < n_; ++i) {
        asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barriers_ + 8 * i), "r"(arrivals)
                     : "memory");
      }
#if __CUDA_ARCH__ >= 900
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
    }
#endif
    __syncwarp();
  }

  // The same ring behind its first n requests and n waits, whose barriers are made: for kernels
  // that count by themselves.
  __device__ __forceinline__ WeightRing(uint8_t* slots, uint8_t* barriers, const RingSize& size,
                                        int warp, uint32_t n)
      : slots_(slots + warp * size.n_slots * size.slot_size),
        slot_size_(size.slot_size),
        barriers_(shared_address(barriers) + 8 * warp * size.n_slots),
        n_(size.n_slots),
        next_(static_cast<int>(n % size.n_slots)),
        oldest_(next_),
        parity_(n / size.n_slots % 2) {}

  // All lanes; n_bytes 0 for nothing, which counts as a request all the same.
  __device__ __forceinline__ void request(const uint8_t* src, int n_bytes) {
    request<1>({src}, n_bytes);
  }
  // As many bytes of each of n places, which share a slot.
  template <int n>
  __device__ __forceinline__ void request(const uint8_t* const (&src)[n], int n_bytes) {
    int n_copied[n], n_all = 0;
#pragma unroll
    for (int k = 0; k < n; ++k) n_all += n_copied[k] = bytes_of_lines(src[k], n_bytes);
    const unsigned barrier = barriers_ + 8 * next_;
    expect(barrier, n_all);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      copy(src[k] - in_line(src[k]), slots_ + next_ * slot_size_ + k * (slot_size_ / n),
           n_copied[k], barrier);
    }
    end_copies(barrier);
    next_ = next_ + 1 == n_ ? 0 : next_ + 1;
  }

  // The oldest request's bytes, once they are there. src: as in request().
  __device__ __forceinline__ const uint8_t* wait(const uint8_t* src) {
    const uint8_t* at[1];
    wait<1>({src}, at);
    return at[0];
  }
  template <int n>
  __device__ __forceinline__ void wait(const uint8_t* const (&src)[n], const uint8_t* (&out)[n]) {
    await(barriers_ + 8 * oldest_, parity_);
#pragma unroll
    for (int k = 0; k < n; ++k) {
      out[k] = slots_ + oldest_ * slot_size_ + k * (slot_size_ / n) + in_line(src[k]);
    }
    if (++oldest_ == n_) oldest_ = 0, parity_ ^= 1;
  }

 private:
  static __device__ __forceinline__ unsigned shared_address(const void* p) {
    return static_cast<unsigned>(__cvta_generic_to_shared(p));
  }

  static __device__ __forceinline__ int in_line(const uint8_t* p) {
    return static_cast<int>(reinterpret_cast<uintptr_t>(p) % kLine);
  }
  // Of the lines that n bytes from src on are in.
  static __device__ __forceinline__ int bytes_of_lines(const uint8_t* src, int n_bytes) {
    const int n = (in_line(src) + n_bytes + kLine - 1) & -kLine;
    return n_bytes ? n : 0;
  }

  // Before and behind the copies of a request, n bytes in all.
  static __device__ __forceinline__ void expect(unsigned barrier, int n) {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x % kWarp == 0) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(n)
                   : "memory");
    }
#endif
  }
  static __device__ __forceinline__ void end_copies(unsigned barrier) {
#if __CUDA_ARCH__ >= 800 && __CUDA_ARCH__ < 900
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(barrier) : "memory");
#endif
  }
  static __device__ __forceinline__ void copy(const uint8_t* src, uint8_t* dst, int n,
                                              unsigned barrier) {
    const int lane = threadIdx.x % kWarp;
#if __CUDA_ARCH__ >= 900
    if (lane == 0 && n > 0) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(shared_address(dst)),
          "l"(src), "r"(n), "r"(barrier)
          : "memory");
    }
#elif __CUDA_ARCH__ >= 800
    for (int i = 16 * lane; i < n; i += 16 * kWarp) {
      asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared_address(dst + i)),
                   "l"(src + i)
                   : "memory");
    }
#else
    for (int i = 16 * lane; i < n; i += 16 * kWarp) {
      *reinterpret_cast<uint4*>(dst + i) = __ldcg(reinterpret_cast<const uint4*>(src + i));
    }
#endif
  }

  static __device__ __forceinline__ void await(unsigned barrier, unsigned parity) {
#if __CUDA_ARCH__ >= 900
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; "
          "selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(barrier), "r"(parity)
          : "memory");
    }
#elif __CUDA_ARCH__ >= 800
    // sm_80 has no wait that sleeps.
    unsigned done = 0;
    while (!done) {
      asm volatile(
          "{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
          : "=r"(done)
          : "r"(barrier), "r"(parity)
          : "memory");
    }
#else
    __syncwarp();
#endif
  }

  uint8_t* slots_;
  int slot_size_;
  unsigned barriers_;
  int n_;
  int next_ = 0;
  int oldest_ = 0;
  unsigned parity_ = 0;
};

}  // namespace sluice::backend::cuda
