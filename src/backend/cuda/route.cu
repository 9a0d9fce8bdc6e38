// norm, router, softmax or sigmoid, the best k, their weights and addresses, and the experts' int8
// input, in one kernel.
//
// Layout   x: [n_rows, d_model] f32; weight: [n_experts, d_model] rows; the rest as in route.h.
// Mapping  a block computes the scores of one expert for all rows: score = (sum w g x) / rms(x), so
//          that squares and products are added in one pass (router_products.h). The blocks share
//          the quantisation of norm(x). The block that ends last chooses for each row, and groups
//          rows by expert (choose.cuh).
// Limits   1 to 16 rows, n_experts <= 1024, n_used <= 16, d_model % 32 == 0 (the launcher checks).
// Cost     see bench/gpu_kernels and docs/decisions/0015.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/choose.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/route.h"
#include "backend/cuda/router_products.h"
#include "backend/cuda/score_row.h"
#include "backend/cuda/stage_rows.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = kRouteWarps;
constexpr int kThreads = kRouteThreads;
constexpr int kKept = 2;  // segments of a warp whose weights are read before the wait
constexpr int kAtOnce = kRowsAtOnce;

// What a block computes before anybody chooses.
class Scorer {
 public:
  // dots: [n_rows, kWarps]; squares: [n_rows, n_segments]; in shared memory.
  __device__ __forceinline__ Scorer(const Route& p, ScoreSum* dots, float* squares)
      : p_(p),
        dots_(dots),
        squares_(squares),
        warp_(warp_index()),
        lane_(lane_index()),
        expert_(static_cast<int>(blockIdx.x)),
        n_segments_((p.d_model + kSegment - 1) / kSegment) {
#pragma unroll
    for (int k = 0; k < kKept; ++k) {
      w_[k] = router_weights(p_, expert_, column(k));
      g_[k] = norm_at(column(k));
    }
  }

  // Products and squares of all rows, some rows at a time; ends with a barrier.
  __device__ __forceinline__ void add_rows() {
#pragma unroll 1
    for (int first = 0; first < p_.n_rows; first += kAtOnce) {
      float4 x[kAtOnce][kKept];
#pragma unroll
      for (int j = 0; j < kAtOnce; ++j) {
#pragma unroll
        for (int k = 0; k < kKept; ++k) x[j][k] = values(min(first + j, p_.n_rows - 1), k);
      }
      EightRows<ScoreSum> dots{};
#pragma unroll
      for (int k = 0; k < kKept; ++k) {
        EightRows<float> squares;
#pragma unroll
        for (int j = 0; j < kAtOnce; ++j) {
          squares.of[j] = square_of(x[j][k]);
          dots.of[j] += score_part(w_[k], weighted(g_[k], x[j][k]));
        }
        set_squares(first, warp_ + kWarps * k, squares);
      }
#pragma unroll 1
      for (int k = kKept; warp_ + kWarps * k < n_segments_; ++k) {
        add_segment(first, k, dots);
      }
      const ScoreSum dot = sum_of_rows(PerLane<EightRows<ScoreSum>>{dots}).value;
      if (lane_ % 4 == 0 && first + lane_ / 4 < p_.n_rows) {
        dots_[(first + lane_ / 4) * kWarps + warp_] = dot;
      }
    }
    __syncthreads();
  }

  // The expert's scores.
  __device__ __forceinline__ void write_scores() const {
    for (int r = warp_; r < p_.n_rows; r += kWarps) {
      const float scale = row_scale(squares_ + r * n_segments_, p_.d_model, p_.eps).value;
      ScoreSum dot = 0;
#pragma unroll
      for (int k = 0; k < kWarps; ++k) dot += dots_[r * kWarps + k];
      if (lane_ == 0) p_.scores[r * (p_.n_experts + 1) + expert_] = scaled_score(dot, scale);
    }
  }

  // The block's share of a = int8(norm(x)): every gridDim-th segment of all rows.
  __device__ __forceinline__ void write_input() const {
    const int step = static_cast<int>(gridDim.x) * kWarps;
    for (int i = expert_ + static_cast<int>(gridDim.x) * warp_; i < p_.n_rows * n_segments_;
         i += step) {
      const int r = i / n_segments_, segment = i % n_segments_;
      write_segment(
          r, segment,
          segment_values(p_.x + static_cast<int64_t>(r) * p_.d_model, segment, p_.d_model, lane_));
    }
  }

 private:
  __device__ __forceinline__ int column(int k) const {
    return kSegment * (warp_ + kWarps * k) + 4 * lane_;
  }
  __device__ __forceinline__ float4 norm_at(int at) const {
    return at < p_.d_model ? __ldg(reinterpret_cast<const float4*>(p_.norm + at))
                           : float4{0, 0, 0, 0};
  }
  __device__ __forceinline__ float4 values(int r, int k) const {
    return segment_values(p_.x + static_cast<int64_t>(r) * p_.d_model, warp_ + kWarps * k,
                          p_.d_model, lane_);
  }
  // A segment that is not kept.
  __device__ __forceinline__ void add_segment(int first, int k, EightRows<ScoreSum>& dots) {
    const float4 w = router_weights(p_, expert_, column(k)), g = norm_at(column(k));
    EightRows<float> squares;
#pragma unroll
    for (int j = 0; j < kAtOnce; ++j) {
      const float4 x = values(min(first + j, p_.n_rows - 1), k);
      squares.of[j] = square_of(x);
      dots.of[j] += score_part(w, weighted(g, x));
    }
    set_squares(first, warp_ + kWarps * k, squares);
  }
  __device__ __forceinline__ void set_squares(int first, int segment,
                                              const EightRows<float>& squares) {
    const float sum = sum_of_rows(PerLane<EightRows<float>>{squares}).value;
    if (lane_ % 4 == 0 && first + lane_ / 4 < p_.n_rows && segment < n_segments_) {
      squares_[(first + lane_ / 4) * n_segments_ + segment] = sum;
    }
  }
  __device__ __forceinline__ void write_segment(int r, int segment, float4 x) const {
    const int at = kSegment * segment + 4 * lane_;
    const float scale = row_scale(squares_ + r * n_segments_, p_.d_model, p_.eps).value;
    const int64_t block = static_cast<int64_t>(r) * p_.a.n_chunks * 8 + 4 * segment + lane_ / 8;
    quantize_segment(
        {normalized(x, scale, norm_at(at))},
        {{p_.a.q + 32 * block + 4 * (lane_ % 8), p_.a.d + block, p_.a.y + block, at < p_.d_model}});
  }

  const Route& p_;
  ScoreSum* dots_;
  float* squares_;
  int warp_, lane_, expert_, n_segments_;
  float4 w_[kKept], g_[kKept];
};

__global__ void __launch_bounds__(kThreads) route_kernel(const __grid_constant__ Route p) {
  extern __shared__ __align__(16) float shared[];
  __shared__ RoutedChoice choice;
  __shared__ bool is_last;
  let_next_kernel_begin();
  Scorer scorer(p, reinterpret_cast<ScoreSum*>(shared), shared + 2 * p.n_rows * kWarps);
  const int own = static_cast<int>(threadIdx.x);
  const uint8_t* const address = own < p.n_experts ? address_of(p, own) : nullptr;
  wait_for_previous_kernel();
  scorer.add_rows();
  scorer.write_scores();
  scorer.write_input();
  choice.table[own] = address;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    is_last = atomicAdd(p.n_done, 1u) == gridDim.x - 1;
    if (is_last) *p.n_done = 0;
  }
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  choose(p, reinterpret_cast<uint32_t*>(shared), choice);
}

}  // namespace

void route(const Route& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_rows <= kMaxRows && p.n_used >= 1 && p.n_used <= kMaxUsed);
  CHECK(p.n_experts >= p.n_used && p.n_experts <= kMostRouted && p.d_model % 32 == 0);
  CHECK(p.type == quant::Type::f32 || p.type == quant::Type::f16 || p.type == quant::Type::bf16);
  CHECK(p.a.n_chunks == row_shape(p.d_model).n_chunks);
  CHECK(p.ranks || can_rank_later(p));
  const int n_segments = (p.d_model + kSegment - 1) / kSegment;
  const int n_floats = p.n_rows * std::max(2 * kWarps + n_segments, p.n_experts);
  const dim3 grid(static_cast<unsigned>(p.n_experts + (p.shared_gate ? 1 : 0)));
  if (!p.ranks) return p.n_rows == 1 ? score_row(p, how) : score_rows(p, how);
  launch(route_kernel, grid, kThreads, 4 * static_cast<size_t>(n_floats), how, p);
}

}  // namespace sluice::backend::cuda
