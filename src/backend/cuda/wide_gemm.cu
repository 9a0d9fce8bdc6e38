// Products of many rows with weights in stripes: see wide_gemm.h.
//
// Layout   weights: stripes (quant/stripes.h); inputs and h: int8 rows (int8_rows.h); out: f32.
// Mapping  an item is a tile of up to 64 rows times 16 stripes, a pair to a warp. For gate and up a
//          pair is the same stripe of both, so that a tile ends with 64 hidden values of its rows.
//          As many blocks as the card holds take every gridDim-th item; those of one tile follow
//          each other. A warp streams its weights by itself (weight_ring.cuh); a chunk of the rows
//          is copied by the block while it computes the one before.
// Limits   n_cols % 32 (super-blocks: 256); the launcher checks.
// Cost     see bench/results/gpu_wide.md and docs/decisions/0018.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_gemm.h"

#include <algorithm>

#include "backend/cuda/launch.cuh"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/wide_items.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kMostHeight = 64;

struct SharedPlan {
  int inputs_at, scales_at, sums_at, rows_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const RingSize& ring, int height) {
  SharedPlan s;
  s.inputs_at = ring.slots_bytes(kTileWarps);
  s.scales_at = s.inputs_at + 2 * height * kTileInputBytes;
  s.sums_at = s.scales_at + kTileWarps * kWarpScales * 4;
  s.rows_at = s.sums_at + kTileWarps * tile_sums(height) * 4;
  s.barriers_at = (s.rows_at + 2 * height * 4 + 7) / 8 * 8;
  s.n_bytes = s.barriers_at + ring.barriers_bytes(kTileWarps);
  return s;
}

// The stripes of a warp; null where there are none. Where only the first is there, it stands for
// the second too.
struct Stripes {
  const uint8_t* at[2];
};
__device__ __forceinline__ Stripes stripes_of(const WideArgs& a, const WideTile& tile, int across) {
  const int n = a.n_out / 8, pair = across * kTileWarps + warp_index();
  if (a.p.h) {
    if (pair >= n) return {};
    return {{stripe_at(a, tile, 0, pair), stripe_at(a, tile, 1, pair)}};
  }
  if (2 * pair >= n) return {};
  return {{stripe_at(a, tile, 0, 2 * pair), stripe_at(a, tile, 0, min(2 * pair + 1, n - 1))}};
}

template <Type type>
__device__ __forceinline__ Stripes at_chunk(const Stripes& stripes, int chunk) {
  return {{stripes.at[0] + chunk_offset<type>(chunk), stripes.at[1] + chunk_offset<type>(chunk)}};
}

__device__ __forceinline__ void write_hidden_rows(const WideArgs& a, const float* sums,
                                                  const int32_t* to, int n, int across) {
  constexpr int kBlocks = kTileWarps / 4;
#pragma unroll 1
  for (int i = warp_index(); i < kBlocks * n; i += kTileWarps) {
    const int part = i % kBlocks, k = i / kBlocks, block = kBlocks * across + part;
    if (32 * block >= a.p.n_out) continue;
    write_tile_hidden(sums, a.p.height, 4 * part, k, a.p.h, to[k], block);
  }
}

__device__ __forceinline__ void write_out_rows(const WideArgs& a, const float* sums,
                                               const int32_t* to, int n, int across) {
  constexpr int kAcross = 8 * kTileStripes;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < n * kAcross; i += kWideThreads) {
    const int k = i / kAcross, j = i % kAcross, column = across * kAcross + j;
    if (column >= a.n_out) continue;
    const MatrixRow of = matrix_row(a.p, column);
    const float sum = sums[tile_sum_at(a.p.height, j / 16, j / 8 % 2, j % 8, k)];
    const float dot = __fadd_rn(sum, of.bias ? __ldg(of.bias + of.row) : 0.0f);
    float* const out = a.p.out + static_cast<int64_t>(to[k]) * a.p.out_stride + column;
    *out = a.p.adds ? __fadd_rn(*out, dot) : dot;
  }
}

// Some take more registers than half of an SM's.
constexpr int n_blocks_of(Type type) {
  switch (type) {
    case Type::q4_0:
    case Type::q4_1:
    case Type::q5_0:
    case Type::q5_1:
    case Type::q2_k:
    case Type::mxfp4:
      return 1;
    default:
      return 2;
  }
}

template <Type type>
__global__ void __launch_bounds__(kWideThreads, blocks_per_sm(n_blocks_of(type)))
    wide_gemm_kernel(const __grid_constant__ WideArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a.ring, a.p.height);
  const int warp = warp_index(), lane = lane_index(), n_chunks = a.shape.n_chunks;
  uint8_t* const inputs = shared + plan.inputs_at;
  auto* const sums = reinterpret_cast<float*>(shared + plan.sums_at);
  auto* const rows = reinterpret_cast<int32_t*>(shared + plan.rows_at);
  auto* const scales = reinterpret_cast<float*>(shared + plan.scales_at) + warp * kWarpScales;
  float* const mine = sums + warp * tile_sums(a.p.height);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  begin_products_of(a.p);

  const int n_items = count_items(a);
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < n_items; item += gridDim.x) {
    const int across = item % a.n_across;
    const WideTile tile = tile_at(a, item / a.n_across);
    const Stripes stripes = stripes_of(a, tile, across);
    const auto request = [&](int chunk) {
      ring.request(at_chunk<type>(stripes, chunk).at,
                   Stripe<type>::chunk_bytes(blocks_of<type>(a.shape, chunk)));
    };
    const bool is_here = stripes.at[0] != nullptr;
    for (int c = 0; is_here && c < min(a.ring.n_slots, n_chunks); ++c) request(c);
    __syncthreads();  // all have written what the item before left here
    name_rows(a, tile, rows, static_cast<int>(threadIdx.x));
    for (int i = lane; i < tile_sums(a.p.height); i += kWarp) mine[i] = 0.0f;
    __syncthreads();
    copy_inputs(a, rows, tile.n, 0, inputs, warp, lane);
#pragma unroll 1
    for (int c = 0; c < n_chunks; ++c) {
      wait_for_copies();
      __syncthreads();
      uint8_t* const now = inputs + c % 2 * a.p.height * kTileInputBytes;
      uint8_t* const next = inputs + (c + 1) % 2 * a.p.height * kTileInputBytes;
      if (c + 1 < n_chunks) copy_inputs(a, rows, tile.n, c + 1, next, warp, lane);
      if (!is_here) continue;
      const uint8_t* chunks[2];
      ring.wait(at_chunk<type>(stripes, c).at, chunks);
      add_tile_chunk<type>({chunks[0], chunks[1]}, blocks_of<type>(a.shape, c), now, tile.n, scales,
                           mine);
      __syncwarp();
      if (c + a.ring.n_slots < n_chunks) request(c + a.ring.n_slots);
    }
    __syncthreads();
    const int32_t* const to = rows + a.p.height;
    a.p.h ? write_hidden_rows(a, sums, to, tile.n, across)
          : write_out_rows(a, sums, to, tile.n, across);
  }
  end_products_of(a.p);
}

// How a type's tiles stand in shared memory: two blocks on an SM where registers and memory allow.
struct TileFit {
  RingSize ring;
  int height;
  int per_sm;
};
template <Type type>
TileFit tile_fit(const Launch& how) {
  TileFit fit{};
  fit.ring.slot_size = 2 * slot_bytes(static_cast<int>(Stripe<type>::chunk_bytes(8)));
  for (fit.per_sm = n_blocks_of(type); fit.per_sm >= 1; --fit.per_sm) {
    const int room = std::min(how.shared_bytes, how.shared_per_sm / fit.per_sm - 1024);
    for (fit.ring.n_slots = 2; fit.ring.n_slots >= 1; --fit.ring.n_slots) {
      const int least = fit.per_sm > 1 ? 32 : 8;
      for (fit.height = kMostHeight; fit.height >= least; fit.height -= 8) {
        if (shared_plan(fit.ring, fit.height).n_bytes <= room) return fit;
      }
    }
  }
  check_failed("a tile fits into shared memory", __FILE__, __LINE__);
}

template <Type type>
void run(const WideGemm& p, const Launch& how) {
  const TileFit fit = tile_fit<type>(how);
  CHECK(p.height >= 1 && p.height <= fit.height && p.height % 8 == 0);
  const WideArgs args = wide_args(p, fit.ring, kTileStripes);
  if (most_items(args) == 0) return;
  const auto n_blocks =
      static_cast<unsigned>(std::min<int64_t>(most_items(args), fit.per_sm * how.n_sms));
  launch(wide_gemm_kernel<type>, dim3(n_blocks), kWideThreads,
         static_cast<size_t>(shared_plan(fit.ring, p.height).n_bytes), how, args);
}

}  // namespace

void check_wide_gemm(const WideGemm& p) {
  CHECK(p.n_cols > 0 && p.n_cols % 32 == 0 && p.in.n_chunks >= row_shape(p.n_cols).n_chunks);
  CHECK(p.n_out > 0 && p.n_out % (p.h ? 32 : 8) == 0 && static_cast<bool>(p.h) == !p.out);
  CHECK(p.n_more >= 0 && p.n_more <= kMoreMatrices && !(p.n_more && (p.h || p.rows.tiles)));
  for (int k = 0; k < p.n_more; ++k) CHECK(p.more[k].n_out > 0 && p.more[k].n_out % 8 == 0);
}

int wide_tile_height(quant::Type type, const Launch& how) {
  int height = 0;
  with_stripe_type(type, [&]<Type t>() { height = tile_fit<t>(how).height; });
  return height;
}

void wide_gemm(const WideGemm& p, const Launch& how) {
  check_wide_gemm(p);
  with_stripe_type(p.type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
