// Copies of 16 bytes from global to shared memory that go on beside the work, from sm_80 on; before
// that they are plain loads. A group ends with end_group(); it is there behind a wait.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

__device__ __forceinline__ void copy_16(uint8_t* to, const void* from) {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                   static_cast<unsigned>(__cvta_generic_to_shared(to))),
               "l"(from)
               : "memory");
#else
  *reinterpret_cast<uint4*>(to) = load_16_past_l1(from);
#endif
}

__device__ __forceinline__ void end_group() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// For all groups but the last n.
template <int n>
__device__ __forceinline__ void await_groups() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(n) : "memory");
#endif
}

__device__ __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_all;" ::: "memory");
#endif
}

}  // namespace sluice::backend::cuda
