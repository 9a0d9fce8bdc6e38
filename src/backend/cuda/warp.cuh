// What all kernels share and no body needs: where a thread stands, loads past L1, and the two
// halves of a programmatic dependent launch.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include "backend/cuda/lanes.h"

namespace sluice::backend::cuda {

// Of the thread in its block, and in its warp.
__device__ __forceinline__ int warp_index() { return static_cast<int>(threadIdx.x) / kWarp; }
__device__ __forceinline__ int lane_index() { return static_cast<int>(threadIdx.x) % kWarp; }

// Blocks of 256 threads that share an SM and its registers, for __launch_bounds__. Before sm_90 it
// has shared memory for one block of these kernels (they take 64 KB and more; an SM has 64 on sm_75
// and 100 on sm_86 and 89), so that one may have all registers.
constexpr int blocks_per_sm(int from_sm_90) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return 1;
#else
  return from_sm_90;
#endif
}

// Whether this is code for sm_90 and later: kernels that are launched nowhere else are empty
// before.
constexpr bool is_from_sm_90() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
  return false;
#else
  return true;
#endif
}

__device__ __forceinline__ float warp_sum(float v) { return sum_of_lanes(PerLane<float>{v}).value; }

// Waits until the kernel before has ended and its writes are visible. Every block of every kernel
// must pass through here before it ends: the kernel behind relies on it for the one before.
__device__ __forceinline__ void wait_for_previous_kernel() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the next kernel begin, up to its own wait, as soon as there is room for it.
__device__ __forceinline__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace sluice::backend::cuda
