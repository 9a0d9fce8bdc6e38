// What the last block of the router does, once all scores are written: the best experts of each row
// by one warp, their weights, and the list of groups, one for each expert that a live row chose.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/rank.h"
#include "backend/cuda/route.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

constexpr int kRouteWarps = 8;
constexpr int kRouteThreads = kRouteWarps * kWarp;
static_assert(kMaxRows * kMaxUsed <= kRouteThreads, "a thread for each slot");
constexpr int kMostRouted = 1024;  // experts

struct Choice {  // in shared memory
  int32_t ids[kMaxRows * kMaxUsed];
  uint32_t rows[kMostRouted];           // bit r: row r chose the expert
  int16_t group[kMostRouted];           // of the expert, if a live row chose it
  int n_starts[kRouteWarps];            // of groups, in a warp's slots
  const uint8_t* table[kRouteThreads];  // the first entries, read ahead by every block
};

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

// The shared expert, which every live row has chosen, and the number of groups.
__device__ __forceinline__ void end_list(const Route& p, int n_routed, int n_live) {
  *p.list.n_groups = n_routed + (p.shared[0] != nullptr);
  if (p.shared[0] == nullptr) return;
  ExpertGroup& group = p.list.groups[n_routed];
  group.gate = p.shared[0], group.up = p.shared[1], group.down = p.shared[2];
  group.n_pairs = n_live;
  for (int r = 0; r < n_live; ++r) {
    group.row[r] = static_cast<int16_t>(r);
    group.slot[r] = static_cast<int16_t>(p.n_rows * p.n_used + r);
  }
}

// Groups in order of the first slot that chose their expert; a thread for each slot.
__device__ __forceinline__ void group_slots(const Route& p, int n_live, Choice& choice) {
  const int slot = static_cast<int>(threadIdx.x), r = slot / p.n_used;
  const bool is_live = slot < p.n_rows * p.n_used && r < n_live;
  const int id = is_live ? choice.ids[slot] : 0;
  if (is_live) atomicOr(&choice.rows[id], 1u << r);
  __syncthreads();
  // A row chose an expert once at most, so a slot's place is the number of earlier rows.
  const uint32_t rows = is_live ? choice.rows[id] : 0u;
  const int place = __popc(rows & ((1u << r % 32) - 1));
  const bool starts = is_live && place == 0;
  const unsigned in_warp = __ballot_sync(kAllLanes, starts);
  if (lane_index() == 0) choice.n_starts[warp_index()] = __popc(in_warp);
  __syncthreads();
  int n_before = __popc(in_warp & ((1u << lane_index()) - 1)), n_all = 0;
#pragma unroll
  for (int w = 0; w < kRouteWarps; ++w) {
    if (w < warp_index()) n_before += choice.n_starts[w];
    n_all += choice.n_starts[w];
  }
  if (starts) {
    choice.group[id] = static_cast<int16_t>(n_before);
    ExpertGroup& group = p.list.groups[n_before];
    const uint8_t* const at = id < kRouteThreads ? choice.table[id] : address_of(p, id);
    group.gate = at;
    group.up = at ? at + p.up_at : nullptr;
    group.down = at ? at + p.down_at : nullptr;
    group.n_pairs = __popc(rows);
  }
  __syncthreads();
  if (is_live) {
    ExpertGroup& group = p.list.groups[choice.group[id]];
    group.row[place] = static_cast<int16_t>(r);
    group.slot[place] = static_cast<int16_t>(slot);
  }
  if (slot == 0) end_list(p, n_all, n_live);
}

// keys: [n_rows, n_experts] in shared memory.
__device__ __forceinline__ void choose(const Route& p, uint32_t* keys, Choice& choice) {
  const int n_live = p.n_live ? min(__ldcg(p.n_live), p.n_rows) : p.n_rows;
  read_scores(p, keys);
  for (int e = threadIdx.x; e < p.n_experts; e += kRouteThreads) choice.rows[e] = 0;
  __syncwarp();
  for (int r = warp_index(); r < p.n_rows; r += kRouteWarps) {
    const int expert = choose_of_row(p, keys + r * p.n_experts, r);
    if (lane_index() < p.n_used) choice.ids[r * p.n_used + lane_index()] = expert;
  }
  __syncthreads();
  group_slots(p, n_live, choice);
}

}  // namespace sluice::backend::cuda
