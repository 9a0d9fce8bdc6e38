// The work of a wide step's experts, cut into tiles: see wide_experts.h.
//
// Mapping  one block, a thread for each expert (each 1024th, if there are more). Full tiles come
//          first, then what is left of each expert, in four classes by size: blocks of a product
//          take every so manyth tile, so each gets about as many of each size.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;
constexpr int kClasses = 4;

// Of all threads before this one; total: of all.
template <typename T>
__device__ __forceinline__ T sum_before(T n, T* sums, T& total) {
  const int warp = warp_index(), lane = lane_index();
  T upto = n;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const T other = __shfl_up_sync(kAllLanes, upto, step);
    if (lane >= step) upto += other;
  }
  __syncthreads();
  if (lane == kWarp - 1) sums[warp] = upto;
  __syncthreads();
  T before = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += sums[w];
    total += sums[w];
  }
  return before + upto - n;
}

// What stands in 16 bits of a number, for each class.
__device__ __forceinline__ int of_class(unsigned long long counts, int of) {
  return static_cast<int>(counts >> 16 * of & 0xffffu);
}

__global__ void __launch_bounds__(kThreads) cut_tiles_kernel(const __grid_constant__ CutTiles p) {
  __shared__ int sums[kWarps];
  __shared__ unsigned long long class_sums[kWarps];
  wait_for_previous_kernel();
  let_next_kernel_begin();
  int n_tiles = 0;
#pragma unroll 1
  for (int base = 0; base < p.n_experts; base += kThreads) {
    const int e = base + static_cast<int>(threadIdx.x);
    const uint8_t* expert = nullptr;
    int first = 0, n_pairs = 0;
    if (e < p.n_experts) {
      expert = reinterpret_cast<const uint8_t*>(
          __ldcg(reinterpret_cast<const unsigned long long*>(p.table + e)));
      first = __ldcg(p.first + e);
      n_pairs = expert ? __ldcg(p.first + e + 1) - first : 0;
    }
    const int n_full = n_pairs / p.height, n_rest = n_pairs % p.height;
    const int size = n_rest ? kClasses - 1 - (kClasses * n_rest - 1) / p.height : 0;
    int all_full = 0;
    unsigned long long all_rests = 0;
    int at = n_tiles + sum_before(n_full, sums, all_full);
    const unsigned long long before =
        sum_before(n_rest ? 1ull << 16 * size : 0ull, class_sums, all_rests);
    for (int i = 0; i < n_full; ++i) p.tiles[at++] = {expert, first + i * p.height, p.height};
    n_tiles += all_full;
    at = n_tiles + of_class(before, size);
    for (int k = 0; k < kClasses; ++k) {
      if (k < size) at += of_class(all_rests, k);
      n_tiles += of_class(all_rests, k);
    }
    if (n_rest) p.tiles[at] = {expert, first + n_full * p.height, n_rest};
  }
  if (threadIdx.x == 0) *p.n_tiles = n_tiles;
}

}  // namespace

void cut_tiles(const CutTiles& p, const Launch& how) {
  CHECK(p.n_experts >= 1 && p.height >= 1);
  launch(cut_tiles_kernel, dim3(1), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
