// What every block of gate_up does for 2 to 16 rows where the router left the choice to it: the
// best experts of each row, by a warp, and the groups of rows that chose the same. One of the
// blocks writes all that for down.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/group_slots.cuh"
#include "backend/cuda/rank.h"

namespace sluice::backend::cuda {

using RankedChoice = Choice<kMostRanked>;
struct RankedRows {  // by slot; in shared memory to the end
  int16_t experts[kMaxRows * kMaxUsed];
  float scores[kMaxRows * kMaxUsed];
};
constexpr int kRanksOfWarp = kMaxRows / kGroupWarps;  // rows

class RowsRanking {
 public:
  __device__ __forceinline__ RowsRanking(const GateUp& p, RankedChoice& choice, RankedRows& rows)
      : r_(p.ranking), n_rows_(p.n_rows), n_used_(p.shape.n_used), choice_(choice), rows_(rows) {}

  // Reads cold memory that no kernel of the layer writes, so before the wait.
  __device__ __forceinline__ void begin() {
    const int own = static_cast<int>(threadIdx.x);
    choice_.table[own] = own < r_.n_experts ? r_.table[own] : nullptr;
    choice_.rows[own] = 0;
  }

  // groups: [room for all] in shared memory; the number of them. A barrier is to follow.
  __device__ __forceinline__ int choose(ExpertGroup* groups) {
    PerLane<OwnKeys> keys[kRanksOfWarp];
#pragma unroll
    for (int i = 0; i < kRanksOfWarp; ++i) {
      if (row(i) < n_rows_) keys[i].value = read_keys(row(i));
    }
    const int n_live = r_.n_live ? min(__ldcg(r_.n_live), n_rows_) : n_rows_, lane = lane_index();
#pragma unroll
    for (int i = 0; i < kRanksOfWarp; ++i) {
      if (row(i) >= n_rows_) continue;
      const Best best = best_of_keys(keys[i], n_used_);
      if (lane < n_used_) {
        const int slot = row(i) * n_used_ + lane;
        choice_.ids[slot] = best.experts.value;
        rows_.experts[slot] = static_cast<int16_t>(best.experts.value);
        rows_.scores[slot] = best.scores.value;
      }
    }
    __syncthreads();
    return group_slots({n_rows_, n_live, n_used_, r_.up_at, r_.down_at, r_.shared}, choice_, groups,
                       [](int) -> const uint8_t* { return nullptr; });
  }

  // What down reads before its wait.
  __device__ __forceinline__ void write_list(const ExpertList& list, const ExpertGroup* groups,
                                             int n_groups) const {
    const int n_pieces = n_groups * static_cast<int>(sizeof(ExpertGroup) / 16);
    for (int i = static_cast<int>(threadIdx.x); i < n_pieces; i += kGroupThreads) {
      reinterpret_cast<uint4*>(list.groups)[i] = reinterpret_cast<const uint4*>(groups)[i];
    }
    if (threadIdx.x == 0) *list.n_groups = n_groups;
    __threadfence();
  }

  // What others read behind gate_up.
  __device__ __forceinline__ void write_weights() const {
    const int lane = lane_index();
#pragma unroll 1
    for (int r = warp_index(); r < n_rows_; r += kGroupWarps) {
      const float* const scores = scores_of(r);
      const int slot = r * n_used_ + lane;
      const float weight = weights_of({r_.score, r_.renormalize, n_used_, r_.n_experts},
                                      {lane < n_used_ ? rows_.scores[slot] : 0.0f},
                                      [&](int e) { return __ldcg(scores + e); })
                               .value;
      if (lane < n_used_) {
        r_.experts[slot] = rows_.experts[slot];
        r_.weights[slot] = weight;
      }
      if (lane == 0 && r_.shared_weights) {
        r_.shared_weights[r] = r_.has_shared_gate ? sigmoid(__ldcg(scores + r_.n_experts)) : 1.0f;
      }
    }
  }

 private:
  __device__ __forceinline__ int row(int i) const { return warp_index() + kGroupWarps * i; }
  __device__ __forceinline__ const float* scores_of(int row) const {
    return r_.scores + row * (r_.n_experts + 1);
  }
  __device__ __forceinline__ OwnKeys read_keys(int row) const {
    OwnKeys keys;
    const float* const scores = scores_of(row);
#pragma unroll
    for (int k = 0; k < OwnKeys::kMost; ++k) {
      const int e = kWarp * k + lane_index();
      keys.of[k] = e < r_.n_experts ? key_of(__ldcg(scores + e)) : 0u;
    }
    return keys;
  }

  const Ranking& r_;
  int n_rows_, n_used_;
  RankedChoice& choice_;
  RankedRows& rows_;
};

}  // namespace sluice::backend::cuda
