// norm, the router's scores and the experts' int8 input, for 2 to 16 rows; gate_up chooses.
//
// Layout   as score_row.cu; scores: [n_rows, n_experts + 1].
// Mapping  a block computes the scores of four experts (the shared expert's gate is the last of
//          them) for two rows, with the bits of score_row.cu, and quantises some segments of its
//          two rows. With an expert for all rows each block read all rows, 64 KB of eight; and its
//          loads went in two rounds.
// Limits   as score_row.cu.
// Cost     see bench/gpu_kernels.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/router_products.h"
#include "backend/cuda/score_row.h"
#include "backend/cuda/segment.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = 8;
constexpr int kThreads = kWarps * kWarp;
constexpr int kExperts = 4;  // of a block
constexpr int kRows = 2;
constexpr int kSums = kExperts * kRows;
constexpr int kKept = 2;           // segments of a warp whose weights are read before the wait
constexpr int kMostSegments = 64;  // 8,192 columns

class RowsScorer {
 public:
  // Reads weights alone.
  __device__ __forceinline__ explicit RowsScorer(const Route& p)
      : p_(p),
        warp_(warp_index()),
        lane_(lane_index()),
        n_segments_((p.d_model + kSegment - 1) / kSegment),
        n_scores_(p.n_experts + (p.shared_gate ? 1 : 0)) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      g_[k] = norm_at(column(k));
#pragma unroll
      for (int e = 0; e < kExperts; ++e) w_[k][e] = weights(e, column(k));
    }
  }

  // squares: [kRows, kMostSegments], dots: [kSums, kWarps], in shared memory; a barrier is to
  // follow.
  __device__ __forceinline__ void add_rows(float* squares, ScoreSum* dots) {
    Sums sums{};
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
#pragma unroll
      for (int r = 0; r < kRows; ++r) x_[k][r] = values(r, k);
    }
#pragma unroll
    for (int k = 0; k < kKept; ++k) add_segment(k, w_[k], g_[k], x_[k], sums, squares);
#pragma unroll 1
    for (int k = kKept; warp_ + kWarps * k < n_segments_; ++k) {
      float4 w[kExperts], x[kRows];
#pragma unroll
      for (int e = 0; e < kExperts; ++e) w[e] = weights(e, column(k));
#pragma unroll
      for (int r = 0; r < kRows; ++r) x[r] = values(r, k);
      add_segment(k, w, norm_at(column(k)), x, sums, squares);
    }
    const ScoreSum dot = sums_of_lanes<kSums>(PerLane<Sums>{sums}).value;
    if (lane_ % (kWarp / kSums) == 0) dots[lane_ / (kWarp / kSums) * kWarps + warp_] = dot;
  }

  // The block's scores of row r, by one warp.
  __device__ __forceinline__ void write_scores(int r, float scale, const ScoreSum* dots) const {
    const int row = row_of(r), expert = kExperts * static_cast<int>(blockIdx.x) + lane_;
    if (lane_ >= kExperts || expert >= n_scores_ || !has_row(r)) return;
    ScoreSum sum = 0;
#pragma unroll
    for (int k = 0; k < kWarps; ++k) sum += dots[(kRows * lane_ + r) * kWarps + k];
    p_.scores[row * (p_.n_experts + 1) + expert] = scaled_score(sum, scale);
  }

  // The block's share of row r's int8: every gridDim-th segment, by the warp that has it.
  __device__ __forceinline__ void write_input(int r, float scale) const {
    if (!has_row(r)) return;
#pragma unroll 1
    for (int s = static_cast<int>(blockIdx.x); s < n_segments_; s += static_cast<int>(gridDim.x)) {
      if (s % kWarps != warp_) continue;
      const int k = s / kWarps;
      const float4 x = k == 0 ? x_[0][r] : k == 1 ? x_[1][r] : values(r, k);
      const float4 g = k == 0 ? g_[0] : k == 1 ? g_[1] : norm_at(column(k));
      const int64_t block = static_cast<int64_t>(row_of(r)) * p_.a.n_chunks * 8 + 4 * s + lane_ / 8;
      quantize_segment({normalized(x, scale, g)},
                       {{p_.a.q + 32 * block + 4 * (lane_ % 8), p_.a.d + block, p_.a.y + block,
                         column(k) < p_.d_model}});
    }
  }

 private:
  using Sums = PartialSums<kSums, ScoreSum>;

  __device__ __forceinline__ int column(int k) const {
    return kSegment * (warp_ + kWarps * k) + 4 * lane_;
  }
  __device__ __forceinline__ float4 norm_at(int at) const {
    return at < p_.d_model ? load_constant(p_.norm + at) : float4{0, 0, 0, 0};
  }
  __device__ __forceinline__ float4 weights(int e, int at) const {
    return router_weights(p_, min(kExperts * static_cast<int>(blockIdx.x) + e, n_scores_ - 1), at);
  }
  // Of an odd number of rows the last stands for the one that is not there.
  __device__ __forceinline__ bool has_row(int r) const {
    return kRows * static_cast<int>(blockIdx.y) + r < p_.n_rows;
  }
  __device__ __forceinline__ int row_of(int r) const {
    return min(kRows * static_cast<int>(blockIdx.y) + r, p_.n_rows - 1);
  }
  __device__ __forceinline__ float4 values(int r, int k) const {
    return segment_values(p_.x + static_cast<int64_t>(row_of(r)) * p_.d_model, warp_ + kWarps * k,
                          p_.d_model, lane_);
  }
  __device__ __forceinline__ void add_segment(int k, const float4 (&w)[kExperts], float4 g,
                                              const float4 (&x)[kRows], Sums& sums,
                                              float* squares) {
    PartialSums<kRows> of_rows;
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      of_rows.of[r] = square_of(x[r]);
      const float4 gx = weighted(g, x[r]);
#pragma unroll
      for (int e = 0; e < kExperts; ++e) sums.of[kRows * e + r] += score_part(w[e], gx);
    }
    const float sum = sums_of_lanes<kRows>(PerLane<PartialSums<kRows>>{of_rows}).value;
    const int segment = warp_ + kWarps * k, r = lane_ / (kWarp / kRows);
    if (lane_ % (kWarp / kRows) == 0 && segment < n_segments_) {
      squares[r * kMostSegments + segment] = sum;
    }
  }

  const Route& p_;
  int warp_, lane_, n_segments_, n_scores_;
  float4 w_[kKept][kExperts], g_[kKept], x_[kKept][kRows];
};

__global__ void __launch_bounds__(kThreads) score_rows_kernel(const __grid_constant__ Route p) {
  __shared__ float squares[kRows * kMostSegments];
  __shared__ ScoreSum dots[kSums * kWarps];
  let_next_kernel_begin();
  RowsScorer scorer(p);
  wait_for_previous_kernel();
  scorer.add_rows(squares, dots);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float scale = row_scale(squares + r * kMostSegments, p.d_model, p.eps).value;
    if (warp_index() == r) scorer.write_scores(r, scale, dots);
    scorer.write_input(r, scale);
  }
}

}  // namespace

void score_rows(const Route& p, const Launch& how) {
  CHECK(can_rank_later(p) && p.d_model <= kSegment * kMostSegments);
  const int n_scores = p.n_experts + (p.shared_gate ? 1 : 0);
  const dim3 grid(static_cast<unsigned>((n_scores + kExperts - 1) / kExperts),
                  static_cast<unsigned>((p.n_rows + kRows - 1) / kRows));
  launch(score_rows_kernel, grid, kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
