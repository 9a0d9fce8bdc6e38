// The work of a wide step's experts, cut into tiles: see wide_experts.h.
//
// Mapping  one block, a thread for each expert (each 1024th, if there are more).
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 1024;
constexpr int kWarps = kThreads / kWarp;

// Of all threads before this one; total: of all.
__device__ __forceinline__ int sum_before(int n, int* sums, int& total) {
  const int warp = warp_index(), lane = lane_index();
  int upto = n;
#pragma unroll
  for (int step = 1; step < kWarp; step *= 2) {
    const int other = __shfl_up_sync(kAllLanes, upto, step);
    if (lane >= step) upto += other;
  }
  __syncthreads();
  if (lane == kWarp - 1) sums[warp] = upto;
  __syncthreads();
  int before = 0;
  total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += sums[w];
    total += sums[w];
  }
  return before + upto - n;
}

__global__ void __launch_bounds__(kThreads) cut_tiles_kernel(const __grid_constant__ CutTiles p) {
  __shared__ int sums[kWarps];
  wait_for_previous_kernel();
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
    int n_more = 0;
    int at = n_tiles + sum_before((n_pairs + p.height - 1) / p.height, sums, n_more);
    for (int i = 0; i < n_pairs; i += p.height) {
      p.tiles[at++] = {expert, first + i, min(p.height, n_pairs - i)};
    }
    n_tiles += n_more;
  }
  if (threadIdx.x == 0) *p.n_tiles = n_tiles;
}

}  // namespace

void cut_tiles(const CutTiles& p, const Launch& how) {
  CHECK(p.n_experts >= 1 && p.height >= 1);
  launch(cut_tiles_kernel, dim3(1), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
