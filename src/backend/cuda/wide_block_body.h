// A warp's part of a block's products (wide_block.cuh), in a kernel as in g++ (lanes.h): some pairs
// of stripes times some groups of eight inputs, chunk by chunk, with all sums in registers. Weights
// are taken apart once for all of the warp's inputs, and an input's bytes and scales are read once
// for all of its stripes. The bits are those of wide_tile.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/wide_block_types.h"
#include "backend/cuda/wide_tile.h"

namespace sluice::backend::cuda {

// Side by side in shared memory, in one load.
struct alignas(8) TwoFloats {
  float of[2];
};

// [pair of stripes][group of inputs][v]: v / 2 is the stripe of the pair, v % 2 the input, as in
// PairProducts.
template <int pairs, int groups>
struct BlockSums {
  float of[pairs][groups][4];
};

template <int pairs, int groups>
SLUICE_LANE_FN void clear_sums(PerLane<BlockSums<pairs, groups>>& sums) {
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int i = 0; i < pairs * groups * 4; ++i) {
      sums[lane].of[i / groups / 4][i / 4 % groups][i % 4] = 0.0f;
    }
  }
}

// Of eight inputs, two blocks: a column's bytes, and the scales of a lane's two inputs.
struct GroupInputs {
  ColumnBytes columns;  // [0..3]
  TwoFloats d[2];
};
SLUICE_LANE_FN void load_group(const uint8_t* inputs, int pair, int g, PerLane<GroupInputs>& out) {
  PerLane<ColumnBytes> columns;
  load_columns<64>(inputs + 64 * pair, kTileInputBytes, 8 * g, 8 * g + 7, columns);
  EACH_LANE(lane) {
    out[lane].columns = columns[lane];
    SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
      const float* const d = tile_input(inputs, 8 * g + 2 * (lane % 4) + odd).d + 2 * pair;
      out[lane].d[odd] = *reinterpret_cast<const TwoFloats*>(d);
    }
  }
}

// P of two blocks: chunks' blocks 2 pair and 2 pair + 1, whose rows' scales are next.
template <Type type, int pairs, int groups>
SLUICE_LANE_FN void add_two_blocks(const uint8_t* const (&chunks)[2 * pairs], int n_blocks,
                                   int pair, const uint8_t* inputs, const ProductStart& start,
                                   PerLane<BlockRow<type>> (&rows)[2 * pairs],
                                   PerLane<BlockSums<pairs, groups>>& P) {
  constexpr int kBy = Stripe<type>::kBy;
  PerLane<WeightBytes> weights[2 * pairs];
  PerLane<TwoBlocks> of[2 * pairs];
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int s = 0; s < 2 * pairs; ++s) {
      rows[s][lane].next(chunks[s], n_blocks, pair, lane, of[s][lane]);
      weights[s][lane] = of[s][lane].weights;
    }
  }
  SLUICE_UNROLL for (int g = 0; g < groups; ++g) {
    PerLane<GroupInputs> in;
    load_group(inputs, pair, g, in);
    sync_lanes();  // else the compiler loads more of them ahead than there are registers for
    PerLane<ColumnBytes> columns;
    EACH_LANE(lane) { columns[lane] = in[lane].columns; }
    SLUICE_UNROLL for (int m = 0; m < pairs; ++m) {
      SLUICE_UNROLL for (int b = 0; b < 2; ++b) {
        PerLane<PairProducts<kBy>> products;
        products_of<kBy, Stripe<type>::kIsSigned>(products, b, weights[2 * m], weights[2 * m + 1],
                                                  columns, start);
        EACH_LANE(lane) {
          SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
            const auto& c = products[lane].c;
            float& sum = P[lane].of[m][g][v];
            sum = BlockRow<type>::add(sum, of[2 * m + v / 2][lane], b, c[0][v], c[32 / kBy - 1][v],
                                      in[lane].d[v % 2].of[b]);
          }
        }
      }
    }
  }
}

// sums + what two pairs of stripes, from `first` on, end the chunk with: N is of minima and inputs
// alone.
template <Type type, int pairs, int groups>
SLUICE_LANE_FN void end_chunk(const uint8_t* const (&chunks)[2 * pairs], int first,
                              const uint8_t* inputs, const PerLane<BlockSums<pairs, groups>>& P,
                              PerLane<BlockSums<pairs, groups>>& sums) {
  using Row = BlockRow<type>;
  constexpr int kPairs = pairs < 2 ? pairs : 2;
  struct Minima {
    float of[8];
  };
  PerLane<typename Row::Ends> ends[2 * kPairs];
  PerLane<Minima> minima[2 * kPairs];
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int s = 0; s < 2 * kPairs; ++s) {
      const uint8_t* const chunk = chunks[2 * first + s];
      ends[s][lane] = Row::ends(chunk, lane / 4);
      if constexpr (Row::kHasMin) Row::minima(chunk, lane / 4, minima[s][lane].of);
    }
  }
  SLUICE_UNROLL for (int g = 0; g < groups; ++g) {
    EACH_LANE(lane) {
      float N[kPairs][4] = {};
      if constexpr (Row::kHasMin) {
        SLUICE_UNROLL for (int half = 0; half < 2; ++half) {
          float y[2][4];
          SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
            StagedLoad::four(tile_input(inputs, 8 * g + 2 * (lane % 4) + odd).y + 4 * half, y[odd]);
          }
          SLUICE_UNROLL for (int i = 0; i < 16 * kPairs; ++i) {
            const int b = i / kPairs / 4, m = i / 4 % kPairs, v = i % 4;
            N[m][v] = fma_rn(minima[2 * m + v / 2][lane].of[4 * half + b], y[v % 2][b], N[m][v]);
          }
        }
      }
      SLUICE_UNROLL for (int m = 0; m < kPairs; ++m) {
        float(&four)[4] = sums[lane].of[first + m][g];
        SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
          four[v] = add_rn(
              four[v], Row::end(ends[2 * m + v / 2][lane], P[lane].of[first + m][g][v], N[m][v]));
        }
      }
    }
  }
}

// sums + the chunk's. inputs: of the warp's first input on, as in wide_tile.h; behind those that
// are there may stand anything. at_once: of the four pairs of blocks, in straight-line code.
template <Type type, int pairs, int groups, int at_once>
SLUICE_LANE_FN void add_block_chunk(const uint8_t* const (&chunks)[2 * pairs], int n_blocks,
                                    const uint8_t* inputs, const ProductStart& start,
                                    PerLane<BlockSums<pairs, groups>>& sums) {
  PerLane<BlockRow<type>> rows[2 * pairs];
  PerLane<BlockSums<pairs, groups>> P;
  clear_sums(P);
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int s = 0; s < 2 * pairs; ++s) rows[s][lane].begin(chunks[s], lane / 4);
  }
  SLUICE_ROLLED for (int base = 0; base < n_blocks / 2; base += at_once) {
    SLUICE_UNROLL for (int k = 0; k < at_once; ++k) {
      if (at_once > 1 && !Stripe<type>::kIsSuper && base + k >= n_blocks / 2) break;
      add_two_blocks<type, pairs, groups>(chunks, n_blocks, base + k, inputs, start, rows, P);
    }
  }
  SLUICE_UNROLL for (int first = 0; first < pairs; first += 2) {
    end_chunk<type, pairs, groups>(chunks, first, inputs, P, sums);
  }
}

// Hidden values of a block's inputs in shared memory: rows of floats, four words longer than it
// needs, so that a warp writes to different banks.
template <int n_hidden>
constexpr int kHiddenStride = n_hidden + 4;

// A warp's hidden values, where the first half of its pairs are gate's stripes and the others the
// same of up: from value `at` of a row on. hidden: of the warp's first input.
template <int n_hidden, int pairs, int groups>
SLUICE_LANE_FN void stage_hidden(const PerLane<BlockSums<pairs, groups>>& sums, float* hidden,
                                 int at) {
  SLUICE_UNROLL for (int g = 0; g < groups; ++g) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int i = 0; i < 2 * pairs; ++i) {
        const int stripe = i / 2, odd = i % 2, other = stripe + pairs;
        const auto& of = sums[lane].of;
        hidden[(8 * g + 2 * (lane % 4) + odd) * kHiddenStride<n_hidden> + at + 8 * stripe +
               lane / 4] =
            swiglu(of[stripe / 2][g][stripe % 2 * 2 + odd], of[other / 2][g][other % 2 * 2 + odd]);
      }
    }
  }
}

// Four blocks of 32 of them, by one warp: eight lanes have a block, four values each. first: the
// first one's number among n of all inputs, each of which has n_hidden / 32. to: slots of the
// inputs; their blocks are block .. of n_there in a slot.
template <int n_hidden>
SLUICE_LANE_FN void write_staged_hidden(const float* hidden, const int32_t* to, int first, int n,
                                        int block, int n_there, const Int8Rows& h) {
  constexpr int kBlocks = n_hidden / 32;
  PerLane<FourValues> values;
  EACH_LANE(lane) {
    const int i = first + lane / 8 < n ? first + lane / 8 : n - 1;
    StagedLoad::four(
        hidden + i / kBlocks * kHiddenStride<n_hidden> + i % kBlocks * 32 + 4 * (lane % 8),
        values[lane].of);
  }
  quantize_four_blocks(values, [&](int lane) -> BlockPlace {
    const int i = first + lane / 8, of = block + i % kBlocks;
    if (i >= n || of >= n_there) return {nullptr, nullptr, nullptr};
    const int64_t at = int64_t{to[i / kBlocks]} * (8 * h.n_chunks) + of;
    return {h.q + 32 * at, h.d + at, h.y + at};
  });
}

}  // namespace sluice::backend::cuda
