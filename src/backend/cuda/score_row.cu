// norm, the router's scores and the experts' int8 input, for a single row; gate_up and down choose.
//
// Layout   x: [d_model] f32; weight: [n_experts, d_model] rows; scores: [n_experts].
// Mapping  a block computes the score of one expert, or of the shared expert's gate, as route.cu
//          does and with its bits. Block s quantises segment s of norm(x).
// Limits   at most 8,192 columns and 256 experts (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0011.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/score_row.h"

#include "backend/cuda/launch.cuh"
#include "backend/cuda/router_products.h"
#include "backend/cuda/stage_row.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = NormedRow::kWarps;
constexpr int kThreads = kWarps * kWarp;
constexpr int kKept = NormedRow::kKept;

__global__ void __launch_bounds__(kThreads) score_row_kernel(const __grid_constant__ Route p) {
  __shared__ float squares[NormedRow::kMostSegments];
  __shared__ ScoreSum dots[kWarps];
  const int warp = warp_index(), lane = lane_index();
  const int expert = static_cast<int>(blockIdx.x);
  let_next_kernel_begin();
  NormedRow row(p.x, {p.norm, p.eps}, p.d_model, warp);
  const int n_segments = (p.d_model + kSegment - 1) / kSegment;
  const auto column = [&](int segment) { return kSegment * segment + 4 * lane; };
  float4 kept[kKept];
#pragma unroll
  for (int k = 0; k < kKept; ++k) kept[k] = router_weights(p, expert, column(warp + kWarps * k));
  wait_for_previous_kernel();

  row.add_squares(squares);
  ScoreSum dot = 0;
#pragma unroll
  for (int k = 0; k < kKept; ++k) {
    dot += score_part(kept[k], weighted(row.weight(0, k, lane), row.value(0, k, lane)));
  }
#pragma unroll 1
  for (int k = kKept, s = warp + kWarps * kKept; s < n_segments; s += kWarps, ++k) {
    dot += score_part(router_weights(p, expert, column(s)),
                      weighted(row.weight(s, k, lane), row.value(s, k, lane)));
  }
  dot = sums_of_lanes<1>(PerLane<PartialSums<1, ScoreSum>>{{{dot}}}).value;
  if (lane == 0) dots[warp] = dot;
  __syncthreads();

  const float scale = row_scale(squares, p.d_model, p.eps).value;
  if (threadIdx.x == 0) {
    ScoreSum sum = 0;
#pragma unroll
    for (int k = 0; k < kWarps; ++k) sum += dots[k];
    p.scores[expert] = scaled_score(sum, scale);
  }
#pragma unroll 1
  for (int s = expert; s < n_segments; s += static_cast<int>(gridDim.x)) {
    if (s % kWarps != warp) continue;
    const float4 v =
        normalized(row.value(s, s / kWarps, lane), scale, row.weight(s, s / kWarps, lane));
    const int block = 4 * s + lane / 8;
    quantize_segment({v}, {{p.a.q + 32 * block + 4 * (lane % 8), p.a.d + block, p.a.y + block,
                            column(s) < p.d_model}});
  }
}

}  // namespace

void score_row(const Route& p, const Launch& how) {
  CHECK(can_rank_later(p) && p.d_model <= kSegment * NormedRow::kMostSegments);
  const dim3 grid(static_cast<unsigned>(p.n_experts + (p.shared_gate ? 1 : 0)));
  launch(score_row_kernel, grid, kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
