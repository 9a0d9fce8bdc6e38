// A tile of a wide step's products, in a kernel as in g++ (lanes.h): some inputs' rows times two
// stripes a warp, chunk by chunk. Inputs of a chunk and all sums stand in shared memory, so that a
// tile may have any number of inputs and no register is indexed at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/contract.h"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/wide_products.h"

namespace sluice::backend::cuda {

constexpr int kTileWarps = 8;
constexpr int kTileStripes = 2 * kTileWarps;

// A chunk of an input: 256 bytes of q, 8 d and 8 y; 16 more, so that a warp's loads spread over the
// banks.
constexpr int kTileInputBytes = kChunk + 2 * 32 + 16;
constexpr int kTilePieces = 20;  // of 16 bytes, without those

SLUICE_LANE_FN InputRow tile_input(const uint8_t* inputs, int k) {
  const uint8_t* const at = inputs + kTileInputBytes * k;
  const auto* const d = reinterpret_cast<const float*>(at + kChunk);
  return {reinterpret_cast<const int8_t*>(at), d, d + 8};
}

// Piece i of a row's chunk where int8 rows have it. at: row * n_chunks + chunk.
SLUICE_LANE_FN const void* tile_piece(const Int8Rows& rows, int64_t at, int i) {
  if (i < 16) return rows.q + kChunk * at + 16 * i;
  return i < 18 ? rows.d + 8 * at + 4 * (i - 16) : rows.y + 8 * at + 4 * (i - 18);
}

// Sums of a tile of `height` inputs (a multiple of 8): a part for each warp, one word longer than
// it needs, so that what four warps have of one input stands in different banks.
constexpr int tile_sums(int height) { return 16 * height + 1; }  // of a warp

// The sum of a warp's stripe (0 or 1) and row, for input k.
SLUICE_LANE_FN int tile_sum_at(int height, int warp, int stripe, int row, int k) {
  return warp * tile_sums(height) + (k / 8 * 4 + k % 2 * 2 + stripe) * kWarp + 4 * row + k % 8 / 2;
}

// A chunk of two stripes for eight inputs from `base` on: their four sums of a lane, the first
// stripe's of its even and odd input, then the second's.
struct FourSums {
  float of[4];
};
template <Type type>
SLUICE_LANE_FN void sum_eight(const PerLane<WeightBytes>& first, const PerLane<WeightBytes>& second,
                              const float* scales, const uint8_t* inputs, int base, int n_inputs,
                              const ProductStart& start, PerLane<FourSums>& out) {
  using Scales = WideScales<type>;
  constexpr int kBy = Stripe<type>::kBy;
  PerLane<ColumnBytes> in;
  PerLane<InputScales> own[2];
  PerLane<FourSums> N;
  load_columns(inputs, kTileInputBytes, base, n_inputs - 1, in);
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
      const int k = base + 2 * (lane % 4) + odd;
      own[odd][lane] =
          load_scales<StagedLoad>(tile_input(inputs, k < n_inputs ? k : n_inputs - 1), 0);
    }
    SLUICE_UNROLL for (int v = 0; v < 4; ++v) out[lane].of[v] = N[lane].of[v] = 0.0f;
  }
  SLUICE_UNROLL for (int half = 0; half < 2; ++half) {
    PerLane<HalfScales> rows[2];
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
        rows[s][lane] = Scales::load(scales + (8 * s + lane / 4) * kWideScales, half);
      }
    }
    SLUICE_UNROLL for (int b = 0; b < 4; ++b) {
      PerLane<PairProducts<kBy>> products;
      products_of<kBy, Stripe<type>::kIsSigned>(products, 4 * half + b, first, second, in, start);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
          const auto& c = products[lane].c;
          const InputScales& of = own[v % 2][lane];
          const HalfScales& row = rows[v / 2][lane];
          float &P = out[lane].of[v], &least = N[lane].of[v];
          P = Scales::add(P, row, b, c[0][v], c[32 / kBy - 1][v], of.d[4 * half + b]);
          least = Scales::add_min(least, row, b, of.y[4 * half + b]);
        }
      }
    }
  }
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
      const float* const row = scales + (v / 2 * 8 + lane / 4) * kWideScales;
      out[lane].of[v] = Scales::end(row, out[lane].of[v], N[lane].of[v]);
    }
  }
}

// sums + the chunk's; sums and scales (kWarpScales floats of room): of the warp.
template <Type type>
SLUICE_LANE_FN void add_tile_chunk(const uint8_t* const (&chunks)[2], int n_blocks,
                                   const uint8_t* inputs, int n_inputs, float* scales,
                                   float* sums) {
  if constexpr (WideScales<type>::kIs) {
    PerLane<WeightBytes> first, second;
    EACH_LANE(lane) {
      Stripe<type>::unpack(chunks[0], n_blocks, lane, first[lane]);
      Stripe<type>::unpack(chunks[1], n_blocks, lane, second[lane]);
      SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
        WideScales<type>::prepare(chunks[s], lane / 4, lane % 4,
                                  scales + (8 * s + lane / 4) * kWideScales);
      }
    }
    sync_lanes();
    const ProductStart start = product_start();
    SLUICE_ROLLED for (int base = 0; base < n_inputs; base += kPairInputs) {
      PerLane<FourSums> got;
      sum_eight<type>(first, second, scales, inputs, base, n_inputs, start, got);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
          float& sum = sums[(base / 8 * 4 + v % 2 * 2 + v / 2) * kWarp + lane];
          sum = add_rn(sum, got[lane].of[v]);
        }
      }
    }
    sync_lanes();
  } else {
    dot_pair<type, StagedLoad>(
        chunks, 0, n_blocks, n_inputs, [&](int k) { return tile_input(inputs, k); },
        [&](int k, int stripe, const PerLane<float>& got) {
          EACH_LANE(lane) {
            float& sum = sums[(k / 8 * 4 + k % 2 * 2 + stripe) * kWarp + lane];
            sum = add_rn(sum, got[lane]);
          }
        });
  }
}

// Where warps have gate's stripe first and up's second: hidden values 32 * block .. of input k,
// from warps `warp` .. warp + 3, by one warp.
SLUICE_LANE_FN void write_tile_hidden(const float* sums, int height, int warp, int k,
                                      const Int8Rows& h, int64_t slot, int block) {
  PerLane<float> values;
  EACH_LANE(lane) {
    const int w = warp + lane / 8, row = lane % 8;
    values[lane] =
        swiglu(sums[tile_sum_at(height, w, 0, row, k)], sums[tile_sum_at(height, w, 1, row, k)]);
  }
  const int64_t at = slot * h.n_chunks * 8 + block;
  quantize_block(values, h.q + 32 * at, h.d + at, h.y + at);
}

}  // namespace sluice::backend::cuda
