// The router of a step of many rows: see wide_route.h.
//
// Layout   x: [n_rows, d_model] f32; weight: [n_experts, d_model] rows; weighted: x times the
//          weights of the norm; scores: [n_rows, n_experts + 1].
// Mapping  three kernels. A block normalises a row. Then a block scores some rows for 16 experts:
//          of each half of its warps, warp w has the segments w, w + 8, .. of eight experts, whose
//          weights stay in registers where they fit, and takes four rows at a time, so that 32 sums
//          are added over the lanes at once; the warps' sums are added in their order. Then a warp
//          chooses for a row (choose.cuh). Scores are sums of floats, in the same order whatever
//          rows stand beside; route.cu's are of integers (docs/decisions/0026).
// Limits   n_experts <= 1024, n_used <= 16, d_model % 32 == 0, <= 8192 (the launcher checks).
// Cost     see bench/results/gpu_wide.md.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_route.h"

#include "backend/cuda/choose.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/router_products.h"
#include "backend/cuda/stage_row.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = NormedRow::kWarps;  // that share a row
constexpr int kNormThreads = kWarps * kWarp;
constexpr int kRows = 4, kExperts = 8, kHalves = 2;
constexpr int kSums = kRows * kExperts;
static_assert(kSums == kWarp);
constexpr int kScoreThreads = kHalves * kWarps * kWarp;
constexpr int kMostBatches = 17;  // of four rows, to a block
constexpr int kKept = 2;          // segments of a warp whose weights stay in registers

__global__ void __launch_bounds__(kNormThreads)
    wide_norm_kernel(const __grid_constant__ WideRoute w) {
  __shared__ float squares[NormedRow::kMostSegments];
  const Route& p = w.of;
  let_next_kernel_begin();
  const int r = static_cast<int>(blockIdx.x), warp = warp_index(), lane = lane_index();
  NormedRow row(p.x, {p.norm, p.eps}, p.d_model, warp);
  wait_for_previous_kernel();
  row.choose(r);
  row.add_squares(squares);
  __syncthreads();
  const int64_t first = static_cast<int64_t>(r) * p.a.n_chunks * 8;
  row.write(squares, [&](int segment, int l) {
    const int64_t block = first + 4 * segment + l / 8;
    return Int8Place{p.a.q + 32 * block + 4 * (l % 8), p.a.d + block, p.a.y + block,
                     kSegment * segment + 4 * l < p.d_model};
  });
  const float scale = row_scale(squares, p.d_model, p.eps).value;
  if (threadIdx.x == 0) w.scales[r] = scale;
  const int n_cols = wide_route_cols(p.d_model);
  float* const out = w.weighted + static_cast<int64_t>(r) * n_cols + 4 * lane;
#pragma unroll 2
  for (int k = 0; kSegment * (warp + kWarps * k) < n_cols; ++k) {
    const int segment = warp + kWarps * k;
    const float4 x = row.value(segment, k, lane), g = row.weight(segment, k, lane);
    *reinterpret_cast<float4*>(out + kSegment * segment) = {mul_rn(g.x, x.x), mul_rn(g.y, x.y),
                                                            mul_rn(g.z, x.z), mul_rn(g.w, x.w)};
  }
}

__device__ __forceinline__ float add_products(float4 w, float4 x, float acc) {
  return fma_rn(w.w, x.w, fma_rn(w.z, x.z, fma_rn(w.y, x.y, fma_rn(w.x, x.x, acc))));
}

struct ScoreArgs {
  WideRoute w;
  int n_outs;  // experts, and the shared expert's gate
  int n_batches;
};

// fits: a row has no more segments than stay in registers.
template <bool fits>
__global__ void __launch_bounds__(kScoreThreads, 1)
    wide_score_kernel(const __grid_constant__ ScoreArgs a) {
  __shared__ float dots[kMostBatches][kHalves][kWarps][kSums];
  const Route& p = a.w.of;
  const int warp = warp_index() % kWarps, half = warp_index() / kWarps, lane = lane_index();
  const int expert = (static_cast<int>(blockIdx.x) * kHalves + half) * kExperts;
  const int first_row = static_cast<int>(blockIdx.y) * a.n_batches * kRows;
  const int n_cols = wide_route_cols(p.d_model), n_rounds = n_cols / (kSegment * kWarps * kKept);
  let_next_kernel_begin();
  float4 weights[fits ? kKept : 1][kExperts];
  const auto read_weights = [&](int k, float4(&to)[kExperts]) {
    const int column = kSegment * (warp + kWarps * k) + 4 * lane;
#pragma unroll
    for (int e = 0; e < kExperts; ++e) {
      to[e] = expert + e < a.n_outs ? router_weights(p, expert + e, column) : float4{0, 0, 0, 0};
    }
  };
#pragma unroll
  for (int k = 0; k < (fits ? kKept : 0); ++k) read_weights(k, weights[k]);
  wait_for_previous_kernel();
  const auto row_of = [&](int batch, int j) {
    return min(first_row + batch * kRows + j, p.n_rows - 1);
  };
#pragma unroll 1
  for (int batch = 0; batch < a.n_batches; ++batch) {
    if (first_row + batch * kRows >= p.n_rows) break;
    PartialSums<kSums> sums;
#pragma unroll
    for (float& sum : sums.of) sum = 0.0f;
#pragma unroll 1
    for (int round = 0; round < (fits ? 1 : n_rounds); ++round) {
#pragma unroll
      for (int k = 0; k < kKept; ++k) {
        if (!fits) read_weights(kKept * round + k, weights[0]);
        float4 x[kRows];
#pragma unroll
        for (int j = 0; j < kRows; ++j) {
          x[j] = *reinterpret_cast<const float4*>(
              a.w.weighted + static_cast<int64_t>(row_of(batch, j)) * n_cols +
              kSegment * (warp + kWarps * (kKept * round + k)) + 4 * lane);
        }
#pragma unroll
        for (int i = 0; i < kSums; ++i) {
          sums.of[i] =
              add_products(weights[fits ? k : 0][i % kExperts], x[i / kExperts], sums.of[i]);
        }
      }
    }
    dots[batch][half][warp][lane] = sums_of_lanes<kSums>(PerLane<PartialSums<kSums>>{sums}).value;
  }
  __syncthreads();
  for (int i = static_cast<int>(threadIdx.x); i < a.n_batches * kHalves * kSums;
       i += kScoreThreads) {
    const int sum = i % kSums, h = i / kSums % kHalves, batch = i / kSums / kHalves;
    const int r = first_row + batch * kRows + sum / kExperts;
    const int e = (static_cast<int>(blockIdx.x) * kHalves + h) * kExperts + sum % kExperts;
    if (r >= p.n_rows || e >= a.n_outs) continue;
    float dot = 0.0f;
#pragma unroll
    for (int k = 0; k < kWarps; ++k) dot = add_rn(dot, dots[batch][h][k][sum]);
    p.scores[static_cast<int64_t>(r) * (p.n_experts + 1) + e] = mul_rn(dot, __ldcg(a.w.scales + r));
  }
}

// A warp for each row; in shared memory its keys.
__global__ void __launch_bounds__(kRouteThreads)
    wide_choose_kernel(const __grid_constant__ WideRoute w) {
  extern __shared__ uint32_t keys[];
  const Route& p = w.of;
  let_next_kernel_begin();
  wait_for_previous_kernel();
  const int r = static_cast<int>(blockIdx.x) * kRouteWarps + warp_index();
  if (r >= p.n_rows) return;
  uint32_t* const own = keys + warp_index() * p.n_experts;
#pragma unroll 4
  for (int e = lane_index(); e < p.n_experts; e += kWarp) {
    own[e] = ordered(__ldcg(p.scores + static_cast<int64_t>(r) * (p.n_experts + 1) + e));
  }
  __syncwarp();
  choose_of_row(p, own, r);
}

// Batches of a block, of which an SM has one: so that all SMs are done at about the same time, in
// few rounds. To read a block's weights is like two batches more.
int batches_of_block(int n_rows, int n_groups, int n_sms) {
  int best = 1, least = 0;
  for (int n = 1; n <= kMostBatches; ++n) {
    const int n_blocks = n_groups * ((n_rows + kRows * n - 1) / (kRows * n));
    const int cost = (n_blocks + n_sms - 1) / n_sms * (n + 2);
    if (least == 0 || cost < least) best = n, least = cost;
  }
  return best;
}

}  // namespace

void wide_route(const WideRoute& w, const Launch& how) {
  const Route& p = w.of;
  CHECK(p.n_rows >= 1 && p.n_used >= 1 && p.n_used <= kMaxUsed);
  CHECK(p.n_experts >= p.n_used && p.n_experts <= kMostRouted && p.d_model % 32 == 0);
  CHECK(p.d_model <= NormedRow::kMostSegments * kSegment);
  CHECK(p.type == quant::Type::f32 || p.type == quant::Type::f16 || p.type == quant::Type::bf16);
  CHECK(p.a.n_chunks == row_shape(p.d_model).n_chunks);
  const auto blocks = [](int n, int per) { return static_cast<unsigned>((n + per - 1) / per); };
  launch(wide_norm_kernel, dim3(blocks(p.n_rows, 1)), kNormThreads, 0, how, w);

  ScoreArgs args{w, p.n_experts + (p.shared_gate ? 1 : 0), 0};
  const unsigned n_groups = blocks(args.n_outs, kHalves * kExperts);
  args.n_batches = batches_of_block(p.n_rows, static_cast<int>(n_groups), how.n_sms);
  const dim3 grid(n_groups, blocks(p.n_rows, kRows * args.n_batches));
  const bool fits = wide_route_cols(p.d_model) <= kSegment * kWarps * kKept;
  launch(fits ? wide_score_kernel<true> : wide_score_kernel<false>, grid, kScoreThreads, 0, how,
         args);
  launch(wide_choose_kernel, dim3(blocks(p.n_rows, kRouteWarps)), kRouteThreads,
         sizeof(uint32_t) * static_cast<size_t>(kRouteWarps * p.n_experts), how, w);
}

}  // namespace sluice::backend::cuda
