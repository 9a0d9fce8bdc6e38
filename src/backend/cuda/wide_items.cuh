// What the kernels of wide products share (wide_gemm.cu, wide_block.cuh): their work as items of a
// tile of rows times some stripes, the rows of a tile, copies of inputs, and the matrices that
// stand side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/weight_ring.cuh"
#include "backend/cuda/wide_gemm.h"
#include "backend/cuda/wide_tile.h"

namespace sluice::backend::cuda {

constexpr int kWideThreads = kTileWarps * kWarp;

struct WideArgs {
  WideGemm p;
  RowShape shape;
  int64_t stripe_bytes;
  int n_out;     // of all matrices
  int n_across;  // items of a tile
  int n_dense;   // tiles, where there is no list
  RingSize ring;
};

// n_stripes: of an item, of all its matrices.
inline WideArgs wide_args(const WideGemm& p, const RingSize& ring, int n_stripes) {
  WideArgs args{p,
                row_shape(p.n_cols),
                static_cast<int64_t>(8 * quant::row_bytes(p.type, p.n_cols)),
                p.n_out,
                0,
                (p.rows.n_rows + p.height - 1) / p.height,
                ring};
  for (int k = 0; k < p.n_more; ++k) args.n_out += p.more[k].n_out;
  const int across = 8 * (p.h ? n_stripes / 2 : n_stripes);
  args.n_across = (args.n_out + across - 1) / across;
  return args;
}
// At most: only the device knows how many tiles a list has.
inline int64_t most_items(const WideArgs& a) {
  return int64_t{a.n_across} * (a.p.rows.tiles ? a.p.rows.most_tiles : a.n_dense);
}

__device__ __forceinline__ int count_items(const WideArgs& a) {
  return a.n_across * (a.p.rows.tiles ? __ldcg(a.p.rows.n_tiles) : a.n_dense);
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
__device__ __forceinline__ void name_rows(const WideArgs& a, const WideTile& tile, int32_t* rows,
                                          int thread) {
  const WideRows& r = a.p.rows;
#pragma unroll 1  // once, mostly: unrolled it takes registers that a block's sums need
  for (int i = thread; i < tile.n; i += kWideThreads) {
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

// A chunk of n rows: a warp copies every eighth of them, 16 bytes to each of its first lanes
// (piece: the lane).
__device__ __forceinline__ void copy_inputs(const WideArgs& a, const int32_t* rows, int n,
                                            int chunk, uint8_t* inputs, int warp, int piece) {
  if (piece >= kTilePieces) return;
  const auto* const from = static_cast<const uint8_t*>(tile_piece(a.p.in, chunk, piece));
  const auto stride = static_cast<uint32_t>(a.p.in.n_chunks * (piece < 16 ? kChunk : 32));
  // Rows are read before the first copy: the compiler waits for all reads before each copy.
  constexpr int kAtOnce = 2;
#pragma unroll 1
  for (int r = warp; r < n; r += kAtOnce * kTileWarps) {
    uint32_t row[kAtOnce];
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      row[k] = static_cast<uint32_t>(rows[min(r + k * kTileWarps, n - 1)]);
    }
#pragma unroll
    for (int k = 0; k < kAtOnce; ++k) {
      const int to = r + k * kTileWarps;
      if (to < n)
        copy_16(inputs + kTileInputBytes * to + 16 * piece, from + uint64_t{row[k]} * stride);
    }
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

// A stripe of the matrix, or of gate (0) and up (1).
__device__ __forceinline__ const uint8_t* stripe_at(const WideArgs& a, const WideTile& tile,
                                                    int matrix, int stripe) {
  const uint8_t* base = tile.expert ? tile.expert + a.p.weights_at[matrix] : a.p.weights[matrix];
  if (a.p.n_more > 0) {
    const MatrixRow of = matrix_row(a.p, 8 * stripe);
    base = of.weights;
    stripe = of.row / 8;
  }
  return base + stripe * a.stripe_bytes;
}

// A kernel waits for its input, then lets the next one begin. A next one that reads the same input
// (begins_beside) need not wait for it again. It waits for the kernel before at its own end, so
// that a third one, which waits for it alone, finds the rows of both.
__device__ __forceinline__ void begin_products_of(const WideGemm& p) {
  if (!p.begins_beside) wait_for_previous_kernel();
  let_next_kernel_begin();
}
__device__ __forceinline__ void end_products_of(const WideGemm& p) {
  if (p.begins_beside) wait_for_previous_kernel();
}

}  // namespace sluice::backend::cuda
