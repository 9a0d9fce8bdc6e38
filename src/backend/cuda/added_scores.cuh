// What a block that has made some columns of a row does for the router's scores: it adds its
// columns' part of each (AddedScores in project.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/project.h"
#include "backend/cuda/router_products.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

// In blocks of n_threads. Thread e adds the block's columns for expert e. The shared expert's gate
// is score n_experts; where there are as many experts as threads no thread is left for it, and the
// first threads add four columns each.
template <int n_threads>
class BlockScores {
 public:
  // Before the wait: reads the router's weights alone.
  __device__ __forceinline__ BlockScores(const AddedScores& p, int first_column, int n_columns)
      : p_(p),
        thread_(static_cast<int>(threadIdx.x)),
        n_scores_(p.n_experts + (p.shared_gate ? 1 : 0)),
        first_(first_column),
        n_fours_(n_columns / 4) {
#pragma unroll
    for (int i = 0; i < kKept; ++i) {
      kept_[i] = i < n_fours_ && thread_ < n_scores_ ? weights(thread_, i) : float4{0, 0, 0, 0};
    }
    if (has_extra()) extra_ = weights(n_threads, thread_);
  }

  // gx: the norm's weights times the block's columns of the row, in shared memory, behind a
  // barrier.
  __device__ __forceinline__ void add(const float* gx) const {
    const auto four = [&](int i) { return *reinterpret_cast<const float4*>(gx + 4 * i); };
    if (thread_ < n_scores_) {
      ScoreSum sum = 0;
#pragma unroll
      for (int i = 0; i < kKept; ++i) {
        if (i < n_fours_) sum += score_part(kept_[i], four(i));
      }
#pragma unroll 1
      for (int i = kKept; i < n_fours_; ++i) sum += score_part(weights(thread_, i), four(i));
      add(thread_, sum);
    }
    if (has_extra()) add(n_threads, score_part(extra_, four(thread_)));
  }

 private:
  static constexpr int kKept = 4;  // fours whose weights are there before the row

  __device__ __forceinline__ bool has_extra() const {
    return n_scores_ > n_threads && thread_ < n_fours_;
  }
  __device__ __forceinline__ float4 weights(int expert, int i) const {
    return router_weights(p_, expert, first_ + 4 * i);
  }
  __device__ __forceinline__ void add(int expert, ScoreSum sum) const {
    atomicAdd(reinterpret_cast<unsigned long long*>(p_.sums + expert), sum);
  }

  const AddedScores& p_;
  int thread_, n_scores_, first_, n_fours_;
  float4 kept_[kKept], extra_{0, 0, 0, 0};
};

// Where no scores are wanted.
struct NoScores {
  __device__ __forceinline__ NoScores(const AddedScores&, int, int) {}
};

}  // namespace sluice::backend::cuda
