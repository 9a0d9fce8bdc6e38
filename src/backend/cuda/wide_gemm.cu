// Products of many rows with weights in stripes: see wide_gemm.h.
//
// Layout   weights: stripes (quant/stripes.h); inputs and h: int8 rows (int8_rows.h); out: f32.
// Mapping  an item is a tile of up to 64 rows times 16 stripes, two to a warp. For gate and up they
//          are the same stripe of both, so that a tile ends with 64 hidden values of its rows.
//          As many blocks as the card holds take every gridDim-th item; those of one tile follow
//          each other. A warp streams its weights by itself (weight_ring.cuh); a chunk of the rows
//          is copied by the block while it computes the one before.
// Limits   n_cols % 32 (super-blocks: 256); the launcher checks.
// Cost     see bench/results/gpu_wide.md and docs/decisions/0018.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_gemm.h"

#include <algorithm>

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/stripe_dispatch.h"
#include "backend/cuda/weight_ring.cuh"
#include "backend/cuda/wide_tile.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = kTileWarps * kWarp;
constexpr int kMostHeight = 64;

struct WideArgs {
  WideGemm p;
  RowShape shape;
  int64_t stripe_bytes;
  int n_across;  // items of a tile
  int n_dense;   // tiles, where there is no list
  RingSize ring;
};

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

__device__ __forceinline__ WideTile tile_at(const WideArgs& a, int i) {
  if (a.p.rows.tiles) {
    const uint4 v = load_16_past_l1(a.p.rows.tiles + i);
    return {reinterpret_cast<const uint8_t*>(uint64_t{v.y} << 32 | v.x), static_cast<int32_t>(v.z),
            static_cast<int32_t>(v.w)};
  }
  const int first = i * a.p.height;
  return {nullptr, first, min(a.p.height, a.p.rows.n_rows - first)};
}

// rows: [height] of inputs, then [height] of outputs.
__device__ __forceinline__ void name_rows(const WideArgs& a, const WideTile& tile, int32_t* rows) {
  const WideRows& r = a.p.rows;
  for (int i = static_cast<int>(threadIdx.x); i < tile.n; i += kThreads) {
    if (r.tiles) {
      const int32_t slot = __ldcg(r.slots + tile.first + i);
      rows[i] = slot / r.slots_per_row;
      rows[a.p.height + i] = slot;
    } else {
      rows[i] = static_cast<int32_t>(r.first_in) + tile.first + i;
      rows[a.p.height + i] = static_cast<int32_t>(r.first_out) + tile.first + i;
    }
  }
}

__device__ __forceinline__ void copy_inputs(const WideArgs& a, const int32_t* rows, int n,
                                            int chunk, uint8_t* inputs) {
  for (int i = static_cast<int>(threadIdx.x); i < kTilePieces * n; i += kThreads) {
    const int r = i / kTilePieces, piece = i - r * kTilePieces;
    const int64_t at = static_cast<int64_t>(rows[r]) * a.p.in.n_chunks + chunk;
    copy_16(inputs + kTileInputBytes * r + 16 * piece, tile_piece(a.p.in, at, piece));
  }
}

// The warp's two stripes of an item; null where there are none.
struct Stripes {
  const uint8_t* at[2];
};
__device__ __forceinline__ Stripes stripes_of(const WideArgs& a, const WideTile& tile, int across) {
  const int n = a.p.n_out / 8, warp = warp_index();
  const auto matrix = [&](int k) {
    return tile.expert ? tile.expert + a.p.weights_at[k] : a.p.weights[k];
  };
  if (a.p.h) {
    const int stripe = across * kTileWarps + warp;
    if (stripe >= n) return {};
    return {{matrix(0) + stripe * a.stripe_bytes, matrix(1) + stripe * a.stripe_bytes}};
  }
  const int stripe = across * kTileStripes + 2 * warp;
  if (stripe >= n) return {};
  return {
      {matrix(0) + stripe * a.stripe_bytes, matrix(0) + min(stripe + 1, n - 1) * a.stripe_bytes}};
}

__device__ __forceinline__ void write_hidden_rows(const WideArgs& a, const float* sums,
                                                  const int32_t* to, int n, int across) {
#pragma unroll 1
  for (int i = warp_index(); i < 2 * n; i += kTileWarps) {
    const int half = i % 2, block = 2 * across + half;
    if (32 * block >= a.p.n_out) continue;
    write_tile_hidden(sums, a.p.height, 4 * half, i / 2, a.p.h, to[i / 2], block);
  }
}

__device__ __forceinline__ void write_out_rows(const WideArgs& a, const float* sums,
                                               const int32_t* to, int n, int across) {
  constexpr int kAcross = 8 * kTileStripes;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < n * kAcross; i += kThreads) {
    const int k = i / kAcross, j = i % kAcross, column = across * kAcross + j;
    if (column >= a.p.n_out) continue;
    const float sum = sums[tile_sum_at(a.p.height, j / 16, j / 8 % 2, j % 8, k)];
    const float dot = __fadd_rn(sum, a.p.bias ? __ldg(a.p.bias + column) : 0.0f);
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
__global__ void __launch_bounds__(kThreads, blocks_per_sm(n_blocks_of(type)))
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
  wait_for_previous_kernel();

  const int n_items = a.n_across * (a.p.rows.tiles ? __ldcg(a.p.rows.n_tiles) : a.n_dense);
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < n_items; item += gridDim.x) {
    const int across = item % a.n_across;
    const WideTile tile = tile_at(a, item / a.n_across);
    const Stripes stripes = stripes_of(a, tile, across);
    const auto request = [&](int chunk) {
      const int64_t at = chunk_offset<type>(chunk);
      const uint8_t* const src[2] = {stripes.at[0] + at, stripes.at[1] + at};
      ring.request(src, Stripe<type>::chunk_bytes(blocks_of<type>(a.shape, chunk)));
    };
    const bool is_here = stripes.at[0] != nullptr;
    for (int c = 0; is_here && c < min(a.ring.n_slots, n_chunks); ++c) request(c);
    __syncthreads();  // all have written what the item before left here
    name_rows(a, tile, rows);
    for (int i = lane; i < 16 * a.p.height; i += kWarp) mine[i] = 0.0f;
    __syncthreads();
    copy_inputs(a, rows, tile.n, 0, inputs);
#pragma unroll 1
    for (int c = 0; c < n_chunks; ++c) {
      wait_for_copies();
      __syncthreads();
      uint8_t* const now = inputs + c % 2 * a.p.height * kTileInputBytes;
      uint8_t* const next = inputs + (c + 1) % 2 * a.p.height * kTileInputBytes;
      if (c + 1 < n_chunks) copy_inputs(a, rows, tile.n, c + 1, next);
      if (!is_here) continue;
      const int64_t at = chunk_offset<type>(c);
      const uint8_t* const src[2] = {stripes.at[0] + at, stripes.at[1] + at};
      const uint8_t* chunks[2];
      ring.wait(src, chunks);
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
  WideArgs args{p,
                row_shape(p.n_cols),
                static_cast<int64_t>(8 * quant::row_bytes(type, p.n_cols)),
                0,
                (p.rows.n_rows + p.height - 1) / p.height,
                fit.ring};
  const int across = 8 * (p.h ? kTileWarps : kTileStripes);
  args.n_across = (p.n_out + across - 1) / across;
  const int64_t most = int64_t{args.n_across} * (p.rows.tiles ? p.rows.most_tiles : args.n_dense);
  if (most == 0) return;
  const auto n_blocks = static_cast<unsigned>(std::min<int64_t>(most, fit.per_sm * how.n_sms));
  launch(wide_gemm_kernel<type>, dim3(n_blocks), kThreads,
         static_cast<size_t>(shared_plan(fit.ring, p.height).n_bytes), how, args);
}

}  // namespace

int wide_tile_height(quant::Type type, const Launch& how) {
  int height = 0;
  with_stripe_type(type, [&]<Type t>() { height = tile_fit<t>(how).height; });
  return height;
}

void wide_gemm(const WideGemm& p, const Launch& how) {
  CHECK(p.n_cols > 0 && p.n_cols % 32 == 0 && p.in.n_chunks >= row_shape(p.n_cols).n_chunks);
  CHECK(p.n_out > 0 && p.n_out % (p.h ? 32 : 8) == 0 && static_cast<bool>(p.h) == !p.out);
  // The kernels behind must see all of this one's rows: it does not let them begin early.
  with_stripe_type(p.type, [&]<Type type>() { run<type>(p, how); });
}

}  // namespace sluice::backend::cuda
