// Products of many rows with weights in stripes: see wide_gemm.h.
//
// Layout   weights: stripes (quant/stripes.h); inputs and h: int8 rows (int8_rows.h); out: f32.
// Mapping  an item is a tile of up to 64 rows times 16 stripes, a pair to a warp (or 32, two pairs:
//          WideGemm::pairs). For gate and up a pair is the same stripe of both, so that a tile ends
//          with 64 (128) hidden values of its rows.
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
#include "backend/cuda/wide_pairs.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = kTileWarps * kWarp;
constexpr int kMostHeight = 64;

struct WideArgs {
  WideGemm p;
  RowShape shape;
  int64_t stripe_bytes;
  int n_out;     // of all matrices
  int n_across;  // items of a tile
  int n_dense;   // tiles, where there is no list
  RingSize ring;
};

struct SharedPlan {
  int inputs_at, scales_at, sums_at, rows_at, barriers_at, n_bytes;
};
__host__ __device__ inline SharedPlan shared_plan(const RingSize& ring, int height, int pairs) {
  SharedPlan s;
  s.inputs_at = ring.slots_bytes(kTileWarps);
  s.scales_at = s.inputs_at + 2 * height * kTileInputBytes;
  s.sums_at = s.scales_at + kTileWarps * pairs * kWarpScales * 4;
  s.rows_at = s.sums_at + kTileWarps * pairs * tile_sums(height) * 4;
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

// A chunk of n rows: a warp copies every eighth of them, 16 bytes to each of its first lanes.
__device__ __forceinline__ void copy_inputs(const WideArgs& a, const int32_t* rows, int n,
                                            int chunk, uint8_t* inputs) {
  const int piece = lane_index();
  if (piece >= kTilePieces) return;
  const auto* const from = static_cast<const uint8_t*>(tile_piece(a.p.in, chunk, piece));
  const int64_t stride = int64_t{a.p.in.n_chunks} * (piece < 16 ? kChunk : 32);
#pragma unroll 4
  for (int r = warp_index(); r < n; r += kTileWarps) {
    copy_16(inputs + kTileInputBytes * r + 16 * piece, from + rows[r] * stride);
  }
}

// Which of the matrices side by side has a row, and what number it has there.
struct MatrixRow {
  const uint8_t* weights;
  const float* bias;
  int row;
};
__device__ __forceinline__ MatrixRow matrix_row(const WideGemm& p, int row) {
  MatrixRow out{p.weights[0], p.bias, row};
  if (p.n_more == 0) return out;
  int n = p.n_out;
#pragma unroll
  for (int k = 0; k < kMoreMatrices; ++k) {
    if (k < p.n_more && out.row >= n) {
      out = {p.more[k].weights, p.more[k].bias, out.row - n};
      n = p.more[k].n_out;
    }
  }
  return out;
}

// The stripes of a warp's pairs; null where there are none. Where only the first ones are there,
// the last one stands for the others.
template <int pairs>
struct Stripes {
  const uint8_t* at[2 * pairs];
};
template <int pairs>
__device__ __forceinline__ Stripes<pairs> stripes_of(const WideArgs& a, const WideTile& tile,
                                                     int across) {
  const int n = a.n_out / 8, first = pairs * (across * kTileWarps + warp_index());
  const auto matrix = [&](int k) {
    return tile.expert ? tile.expert + a.p.weights_at[k] : a.p.weights[k];
  };
  const auto place = [&](int stripe) {
    if (a.p.n_more == 0) return matrix(0) + stripe * a.stripe_bytes;
    const MatrixRow of = matrix_row(a.p, 8 * stripe);
    return of.weights + of.row / 8 * a.stripe_bytes;
  };
  Stripes<pairs> out{};
  if ((a.p.h ? first : 2 * first) >= n) return out;
#pragma unroll
  for (int k = 0; k < 2 * pairs; ++k) {
    const int stripe = min(a.p.h ? first + k / 2 : 2 * first + k, n - 1);
    out.at[k] = a.p.h ? matrix(k % 2) + stripe * a.stripe_bytes : place(stripe);
  }
  return out;
}

template <Type type, int pairs>
__device__ __forceinline__ Stripes<pairs> at_chunk(const Stripes<pairs>& stripes, int chunk) {
  Stripes<pairs> out;
#pragma unroll
  for (int k = 0; k < 2 * pairs; ++k) out.at[k] = stripes.at[k] + chunk_offset<type>(chunk);
  return out;
}

// n_pairs: of all warps, here and below.
__device__ __forceinline__ void write_hidden_rows(const WideArgs& a, const float* sums,
                                                  const int32_t* to, int n, int across,
                                                  int n_pairs) {
  const int n_blocks = n_pairs / 4;
#pragma unroll 1
  for (int i = warp_index(); i < n_blocks * n; i += kTileWarps) {
    const int part = i % n_blocks, k = i / n_blocks, block = n_blocks * across + part;
    if (32 * block >= a.p.n_out) continue;
    write_tile_hidden(sums, a.p.height, 4 * part, k, a.p.h, to[k], block);
  }
}

__device__ __forceinline__ void write_out_rows(const WideArgs& a, const float* sums,
                                               const int32_t* to, int n, int across, int n_pairs) {
  const int n_across = 16 * n_pairs;
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < n * n_across; i += kThreads) {
    const int k = i / n_across, j = i % n_across, column = across * n_across + j;
    if (column >= a.n_out) continue;
    const MatrixRow of = matrix_row(a.p, column);
    const float sum = sums[tile_sum_at(a.p.height, j / 16, j / 8 % 2, j % 8, k)];
    const float dot = __fadd_rn(sum, of.bias ? __ldg(of.bias + of.row) : 0.0f);
    float* const out = a.p.out + static_cast<int64_t>(to[k]) * a.p.out_stride + column;
    *out = a.p.adds ? __fadd_rn(*out, dot) : dot;
  }
}

// Some take more registers than half of an SM's.
constexpr int n_blocks_of(Type type, int pairs) {
  if (pairs > 1) return 1;
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

template <Type type, int pairs>
__global__ void __launch_bounds__(kThreads, blocks_per_sm(n_blocks_of(type, pairs)))
    wide_gemm_kernel(const __grid_constant__ WideArgs a) {
  extern __shared__ __align__(128) uint8_t shared[];
  const SharedPlan plan = shared_plan(a.ring, a.p.height, pairs);
  const int warp = warp_index(), lane = lane_index(), n_chunks = a.shape.n_chunks;
  uint8_t* const inputs = shared + plan.inputs_at;
  auto* const sums = reinterpret_cast<float*>(shared + plan.sums_at);
  auto* const rows = reinterpret_cast<int32_t*>(shared + plan.rows_at);
  auto* const scales =
      reinterpret_cast<float*>(shared + plan.scales_at) + warp * pairs * kWarpScales;
  float* const mine = sums + warp * pairs * tile_sums(a.p.height);
  WeightRing ring(shared, shared + plan.barriers_at, a.ring, warp);
  wait_for_previous_kernel();

  const int n_items = a.n_across * (a.p.rows.tiles ? __ldcg(a.p.rows.n_tiles) : a.n_dense);
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < n_items; item += gridDim.x) {
    const int across = item % a.n_across;
    const WideTile tile = tile_at(a, item / a.n_across);
    const Stripes<pairs> stripes = stripes_of<pairs>(a, tile, across);
    const auto request = [&](int chunk) {
      ring.request(at_chunk<type>(stripes, chunk).at,
                   Stripe<type>::chunk_bytes(blocks_of<type>(a.shape, chunk)));
    };
    const bool is_here = stripes.at[0] != nullptr;
    for (int c = 0; is_here && c < min(a.ring.n_slots, n_chunks); ++c) request(c);
    __syncthreads();  // all have written what the item before left here
    name_rows(a, tile, rows);
    for (int i = lane; i < pairs * tile_sums(a.p.height); i += kWarp) mine[i] = 0.0f;
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
      const uint8_t* chunks[2 * pairs];
      ring.wait(at_chunk<type>(stripes, c).at, chunks);
      if constexpr (pairs > 1) {
        add_pairs_chunk<type, pairs>(chunks, now, tile.n, scales, mine, a.p.height);
      } else {
        add_tile_chunk<type>({chunks[0], chunks[1]}, blocks_of<type>(a.shape, c), now, tile.n,
                             scales, mine);
      }
      __syncwarp();
      if (c + a.ring.n_slots < n_chunks) request(c + a.ring.n_slots);
    }
    __syncthreads();
    const int32_t* const to = rows + a.p.height;
    a.p.h ? write_hidden_rows(a, sums, to, tile.n, across, kTileWarps * pairs)
          : write_out_rows(a, sums, to, tile.n, across, kTileWarps * pairs);
  }
}

// How a type's tiles stand in shared memory: two blocks on an SM where registers and memory allow.
struct TileFit {
  RingSize ring;
  int height;
  int per_sm;
};
template <Type type, int pairs>
TileFit tile_fit(const Launch& how) {
  TileFit fit{};
  fit.ring.slot_size = 2 * pairs * slot_bytes(static_cast<int>(Stripe<type>::chunk_bytes(8)));
  for (fit.per_sm = n_blocks_of(type, pairs); fit.per_sm >= 1; --fit.per_sm) {
    const int room = std::min(how.shared_bytes, how.shared_per_sm / fit.per_sm - 1024);
    for (fit.ring.n_slots = 2; fit.ring.n_slots >= 1; --fit.ring.n_slots) {
      const int least = fit.per_sm > 1 ? 32 : 8;
      for (fit.height = kMostHeight; fit.height >= least; fit.height -= 8) {
        if (shared_plan(fit.ring, fit.height, pairs).n_bytes <= room) return fit;
      }
    }
  }
  check_failed("a tile fits into shared memory", __FILE__, __LINE__);
}

template <Type type, int pairs>
void run(const WideGemm& p, const Launch& how) {
  const TileFit fit = tile_fit<type, pairs>(how);
  CHECK(p.height >= 1 && p.height <= fit.height && p.height % 8 == 0);
  WideArgs args{p,
                row_shape(p.n_cols),
                static_cast<int64_t>(8 * quant::row_bytes(type, p.n_cols)),
                p.n_out,
                0,
                (p.rows.n_rows + p.height - 1) / p.height,
                fit.ring};
  const int across = 8 * pairs * (p.h ? kTileWarps : kTileStripes);
  for (int k = 0; k < p.n_more; ++k) args.n_out += p.more[k].n_out;
  args.n_across = (args.n_out + across - 1) / across;
  const int64_t most = int64_t{args.n_across} * (p.rows.tiles ? p.rows.most_tiles : args.n_dense);
  if (most == 0) return;
  const auto n_blocks = static_cast<unsigned>(std::min<int64_t>(most, fit.per_sm * how.n_sms));
  launch(wide_gemm_kernel<type, pairs>, dim3(n_blocks), kThreads,
         static_cast<size_t>(shared_plan(fit.ring, p.height, pairs).n_bytes), how, args);
}

// use.operator()<type, pairs>().
template <typename Use>
void with_pairs(quant::Type type, int pairs, const Use& use) {
  with_stripe_type(type, [&]<Type t>() {
    if constexpr (WideScales<t>::kIs) {
      if (pairs == 2) return use.template operator()<t, 2>();
    }
    CHECK(pairs == 1);
    use.template operator()<t, 1>();
  });
}

}  // namespace

int wide_tile_height(quant::Type type, const Launch& how, int pairs) {
  int height = 0;
  with_pairs(type, pairs, [&]<Type t, int n>() { height = tile_fit<t, n>(how).height; });
  return height;
}

void wide_gemm(const WideGemm& p, const Launch& how) {
  CHECK(p.n_cols > 0 && p.n_cols % 32 == 0 && p.in.n_chunks >= row_shape(p.n_cols).n_chunks);
  CHECK(p.n_out > 0 && p.n_out % (p.h ? 32 : 8) == 0 && static_cast<bool>(p.h) == !p.out);
  CHECK(p.n_more >= 0 && p.n_more <= kMoreMatrices && !(p.n_more && (p.h || p.rows.tiles)));
  for (int k = 0; k < p.n_more; ++k) CHECK(p.more[k].n_out > 0 && p.more[k].n_out % 8 == 0);
  // The kernels behind must see all of this one's rows: it does not let them begin early.
  with_pairs(p.type, p.pairs, [&]<Type type, int pairs>() { run<type, pairs>(p, how); });
}

}  // namespace sluice::backend::cuda
