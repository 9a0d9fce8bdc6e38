// Pairs of expert and row, sorted by expert: see wide_experts.h.
//
// Mapping  a block for each expert, which reads all choices twice (they are in L2): first how many
//          are its own and how many are of experts before it, then the places of its own. A warp
//          has a part of the choices, so that slots stay in order without a barrier for each;
//          nothing is counted by atomics. A kernel behind tells the host.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 32;  // so that a lane waits for memory once or twice in each reading
constexpr int kThreads = kWarps * kWarp;

__global__ void __launch_bounds__(kThreads) sort_pairs_kernel(const __grid_constant__ SortPairs p) {
  __shared__ int own[kWarps], before[kWarps];
  wait_for_previous_kernel();
  let_next_kernel_begin();
  const int expert = static_cast<int>(blockIdx.x), warp = warp_index(), lane = lane_index();
  const int part = ((p.n_slots + kWarps - 1) / kWarps + kWarp - 1) / kWarp * kWarp;
  const int begin = warp * part, end = min(begin + part, p.n_slots);
  int n_own = 0, n_before = 0;
#pragma unroll 8
  for (int s = begin + lane; s < end; s += kWarp) {
    const int id = __ldcg(p.experts + s);
    n_own += id == expert;
    n_before += id < expert;
  }
  n_own = sum_of_lanes(PerLane<int>{n_own}).value;
  n_before = sum_of_lanes(PerLane<int>{n_before}).value;
  if (lane == 0) own[warp] = n_own, before[warp] = n_before;
  __syncthreads();
  int first = 0, n_all = 0, at = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w == warp) at = n_all;
    first += before[w], n_all += own[w];
  }
  at += first;
  if (threadIdx.x == 0) {
    p.first[expert] = first;
    if (expert == p.n_experts - 1) p.first[p.n_experts] = first + n_all;
    if (p.n_pairs) p.n_pairs[expert] = n_all;
  }
#pragma unroll 8
  for (int s = begin; s < end; s += kWarp) {
    const bool is_own = s + lane < end && __ldcg(p.experts + s + lane) == expert;
    const unsigned lanes = __ballot_sync(kAllLanes, is_own);
    if (is_own) p.slots[at + __popc(lanes & ((1u << lane) - 1))] = s + lane;
    at += __popc(lanes);
  }
}

struct Tell {
  uint64_t* told;
  const uint32_t* step;
  uint32_t layer;
};
__global__ void tell_kernel(const __grid_constant__ Tell p) {
  wait_for_previous_kernel();
  const uint64_t number = uint64_t{__ldcg(p.step)} << 32 | uint64_t{p.layer} << 16;
  __threadfence_system();
#if __CUDA_ARCH__ >= 700
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(p.told), "l"(number) : "memory");
#endif
}

}  // namespace

void sort_pairs(const SortPairs& p, const Launch& how) {
  CHECK(p.n_slots >= 1 && p.n_experts >= 1);
  launch(sort_pairs_kernel, dim3(static_cast<unsigned>(p.n_experts)), kThreads, 0, how, p);
  if (!p.told) return;
  Launch after = how;
  after.overlaps = false;  // what the host reads then has left the device
  launch(tell_kernel, dim3(1), 1, 0, after, Tell{p.told, p.step, p.layer});
}

}  // namespace sluice::backend::cuda
