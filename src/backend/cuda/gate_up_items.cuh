// What the blocks of both kernels of gate_up for several rows do alike: they get the list of
// groups, or rank and make it, and take every gridDim-th item of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/expert_sizes.cuh"
#include "backend/cuda/rank_rows.cuh"

namespace sluice::backend::cuda {

constexpr int most_of(int a, size_t b) { return a > static_cast<int>(b) ? a : static_cast<int>(b); }

// Shared memory of the list, behind `at`: what is chosen stands where sums (n_bytes of them) come
// later, since the choice is over before there are any.
struct ListPlan {
  int ranked_at, groups_at, end;

  __host__ __device__ constexpr ListPlan(const GateUp& p, int at, int n_bytes, int most_groups)
      : ranked_at(at + (p.ranking.scores ? most_of(n_bytes, sizeof(RankedChoice)) : n_bytes)),
        groups_at(ranked_at + (p.ranking.scores ? static_cast<int>(sizeof(RankedRows)) : 0)),
        end(groups_at + most_groups * static_cast<int>(sizeof(ExpertGroup))) {}
};

// The list of a block, who may be the one that writes it for down: the last block, which has not
// more items than others, where the router did not.
class GateUpList {
 public:
  // Before the wait.
  __device__ __forceinline__ GateUpList(const GateUp& p, uint8_t* choice, uint8_t* ranked)
      : p_(p),
        ranks_(p.ranking.scores != nullptr),
        writes_(ranks_ && blockIdx.x == gridDim.x - 1),
        ranking_(p, *reinterpret_cast<RankedChoice*>(choice),
                 *reinterpret_cast<RankedRows*>(ranked)) {
    if (ranks_) ranking_.begin();
  }

  __device__ __forceinline__ void wait() const {
    wait_for_previous_kernel();
    if (!writes_) let_next_kernel_begin();
  }

  // After it; the number of groups. Ends with a barrier.
  __device__ __forceinline__ int read(int most_groups, ExpertGroup* groups) {
    int n_groups = 0;
    if (ranks_) {
      n_groups = ranking_.choose(groups);
    } else {
      n_groups = __ldcg(p_.list.n_groups);
      load_groups(p_.list.groups, most_groups, groups);
    }
    __syncthreads();
    if (writes_) {
      ranking_.write_list(p_.list, groups, n_groups);
      __syncthreads();
      let_next_kernel_begin();
    }
    return n_groups;
  }

  // At the end.
  __device__ __forceinline__ void write_weights() const {
    if (writes_) ranking_.write_weights();
  }

 private:
  const GateUp& p_;
  bool ranks_, writes_;
  RowsRanking ranking_;
};

// The block's items, one after the other: a block of 32 hidden values of a group.
class GateUpItems {
 public:
  __device__ __forceinline__ GateUpItems(const ExpertShape& shape, int n_groups)
      : n_routed_(n_groups - (shape.shared_d_ff > 0 ? 1 : 0)),
        per_group_(shape.d_ff / 32),
        n_items_(n_routed_ * per_group_ + shape.shared_d_ff / 32),
        item_(static_cast<int>(blockIdx.x)),
        group_step_(static_cast<int>(gridDim.x) / per_group_),
        block_step_(static_cast<int>(gridDim.x) % per_group_),
        group_(min(item_ / per_group_, n_routed_)),
        block_(item_ - group_ * per_group_) {}

  __device__ __forceinline__ bool is_done() const { return item_ >= n_items_; }
  __device__ __forceinline__ int group() const { return group_; }
  __device__ __forceinline__ int block() const { return block_; }
  __device__ __forceinline__ void next() {
    item_ += static_cast<int>(gridDim.x);
    group_ += group_step_, block_ += block_step_;
    if (block_ >= per_group_) block_ -= per_group_, ++group_;
    if (group_ > n_routed_) block_ += (group_ - n_routed_) * per_group_, group_ = n_routed_;
  }

 private:
  int n_routed_, per_group_, n_items_, item_;
  int group_step_, block_step_;  // from an item to the block's next
  int group_, block_;
};

}  // namespace sluice::backend::cuda
