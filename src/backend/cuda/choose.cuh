// What the last block of the router does, once all scores are written: the best experts of each row
// by one warp, their weights, and the list of groups, one for each expert that a live row chose.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/group_slots.cuh"
#include "backend/cuda/rank.h"
#include "backend/cuda/route.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

constexpr int kRouteWarps = kGroupWarps;
constexpr int kRouteThreads = kGroupThreads;
constexpr int kMostRouted = 1024;  // experts
using RoutedChoice = Choice<kMostRouted>;

// Scores as keys. keys: [n_rows, n_experts].
__device__ __forceinline__ void read_scores(const Route& p, uint32_t* keys) {
  for (int r = warp_index(); r < p.n_rows; r += kRouteWarps) {
#pragma unroll 4
    for (int e = lane_index(); e < p.n_experts; e += kWarp) {
      keys[r * p.n_experts + e] = ordered(__ldcg(p.scores + r * (p.n_experts + 1) + e));
    }
  }
}

// Experts and weights of row r, by one warp: lane k gets rank k's expert.
__device__ __forceinline__ int choose_of_row(const Route& p, uint32_t* keys, int r) {
  const Best best = best_of_row(keys, p.n_experts, p.n_used);
  const int lane = lane_index();
  __syncwarp();
  for (int e = lane; e < p.n_experts; e += kWarp) {
    keys[e] = __float_as_uint(score_of(keys[e]));  // as scores again, for the softmax
  }
  __syncwarp();
  const float weight = expert_weights({p.score, p.renormalize, p.n_used, p.n_experts}, best.scores,
                                      reinterpret_cast<const float*>(keys))
                           .value;
  if (lane < p.n_used) {
    p.experts[r * p.n_used + lane] = best.experts.value;
    p.weights[r * p.n_used + lane] = weight;
  }
  if (lane == 0 && p.shared_weights) {
    const float gate =
        p.shared_gate ? __ldcg(p.scores + r * (p.n_experts + 1) + p.n_experts) : 0.0f;
    p.shared_weights[r] = p.shared_gate ? sigmoid(gate) : 1.0f;
  }
  return best.experts.value;
}

__device__ __forceinline__ const uint8_t* address_of(const Route& p, int expert) {
  return reinterpret_cast<const uint8_t*>(
      __ldcg(reinterpret_cast<const unsigned long long*>(p.table + expert)));
}

// keys: [n_rows, n_experts] in shared memory.
__device__ __forceinline__ void choose(const Route& p, uint32_t* keys, RoutedChoice& choice) {
  const int n_live = p.n_live ? min(__ldcg(p.n_live), p.n_rows) : p.n_rows;
  read_scores(p, keys);
  for (int e = threadIdx.x; e < p.n_experts; e += kRouteThreads) choice.rows[e] = 0;
  __syncwarp();
  for (int r = warp_index(); r < p.n_rows; r += kRouteWarps) {
    const int expert = choose_of_row(p, keys + r * p.n_experts, r);
    if (lane_index() < p.n_used) choice.ids[r * p.n_used + lane_index()] = expert;
  }
  __syncthreads();
  const int n_groups =
      group_slots({p.n_rows, n_live, p.n_used, p.up_at, p.down_at, p.shared}, choice, p.list.groups,
                  [&](int id) { return address_of(p, id); });
  if (threadIdx.x == 0) *p.list.n_groups = n_groups;
}

}  // namespace sluice::backend::cuda
