// The pairs of a block of attention of many rows, of wide_attend.cu and group_attend.cu: a pair is
// a row and one of a kv head's query heads; they follow each other by row, a warp has 16 of them.
// Rows of one sequence stand side by side and are taken together. SPDX-License-Identifier:
// Apache-2.0
#pragma once

#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_attend.h"
#include "backend/cuda/wide_attend_pass.h"

namespace sluice::backend::cuda {

constexpr int kPiece = 16;  // positions that stand side by side in a page, at least

// Of a block's rows, in shared memory.
template <int n_pairs>
struct PairRows {
  int32_t sequences[n_pairs], positions[n_pairs];
};

template <int n_pairs, int n_threads>
class PairsOfBlock {
 public:
  struct Pair {
    int row, head;
  };

  // Blocks with the longest rows begin first. A barrier is to follow.
  __device__ __forceinline__ PairsOfBlock(const Attend& p, const int& per_kv, int n_tiles,
                                          PairRows<n_pairs>& rows)
      : p_(p),
        rows_(rows),
        per_kv_(per_kv),
        kv_head_(static_cast<int>(blockIdx.x)),
        first_pair_((n_tiles - 1 - static_cast<int>(blockIdx.y)) * n_pairs),
        first_row_(first_pair_ / per_kv) {
    const int n_live = p.n_live ? min(__ldcg(p.n_live), p.n_rows) : p.n_rows;
    n_rows_ = min((first_pair_ + n_pairs - 1) / per_kv + 1, n_live) - first_row_;
    for (int i = static_cast<int>(threadIdx.x); i < n_rows_; i += n_threads) {
      rows.sequences[i] = __ldcg(p.sequences + first_row_ + i);
      rows.positions[i] = __ldcg(p.positions + first_row_ + i);
    }
  }

  __device__ __forceinline__ int kv_head() const { return kv_head_; }
  // Live ones; may be less than none.
  __device__ __forceinline__ int n_rows() const { return n_rows_; }
  __device__ __forceinline__ int sequence(int row) const { return rows_.sequences[row]; }
  __device__ __forceinline__ int position(int row) const { return rows_.positions[row]; }

  // Of a lane: r is 0 or 1.
  __device__ __forceinline__ Pair pair_of(int r) const {
    const int pair = first_pair_ + kPassRows * warp_index() + lane_index() / 4 + 8 * r;
    const int row = pair / per_kv_;
    return {row, kv_head_ * per_kv_ + pair - row * per_kv_};
  }

  // Behind the rows of the same sequence.
  __device__ __forceinline__ int run_end(int row) const {
    const int sequence = rows_.sequences[row];
    if (rows_.sequences[n_rows_ - 1] == sequence) return n_rows_;
    int end = row + 1;
    while (rows_.sequences[end] == sequence) ++end;
    return end;
  }

  // How many keys the pair's query sees of those of rows begin .. end - 1.
  __device__ __forceinline__ int limit(int r, int begin, int end) const {
    const int row = pair_of(r).row - first_row_;
    return row >= begin && row < end ? rows_.positions[row] + 1 : 0;
  }

  // Whether any of these rows is among pairs first .. first + n - 1 of the block.
  __device__ __forceinline__ bool has_rows(int first, int n, int begin, int end) const {
    const int pair = first_pair_ + first;
    return pair / per_kv_ - first_row_ < end && (pair + n - 1) / per_kv_ - first_row_ >= begin;
  }

  // Pairs that there are not read another's query, and see nothing.
  template <int dims, typename Pass>
  __device__ __forceinline__ void begin(const WideAttend& p, Pass& pass) const {
    PerLane<const uint16_t*> queries[2];
    PerLane<float> scales[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const Pair pair = pair_of(r);
      const int row = max(min(pair.row, first_row_ + n_rows_ - 1), 0);
      const int64_t at = static_cast<int64_t>(row) * p_.n_heads + pair.head;
      queries[r].value = p.queries + at * kQueryParts * dims;
      scales[r].value = __ldcg(p.scales + at);
    }
    pass.begin(queries, scales);
  }

 private:
  const Attend& p_;
  const PairRows<n_pairs>& rows_;
  const int& per_kv_;  // a parameter of the kernel: not in a register
  int kv_head_, first_pair_, first_row_, n_rows_;
};

__device__ __forceinline__ int most_of_warp(int v) {
  return static_cast<int>(most_of_lanes(PerLane<uint32_t>{static_cast<uint32_t>(v)}).value);
}
__device__ __forceinline__ int least_of_warp(int v) {
  return static_cast<int>(~most_of_lanes(PerLane<uint32_t>{~static_cast<uint32_t>(v)}).value);
}

}  // namespace sluice::backend::cuda
