// A tile of a wide step's products where a warp has two pairs of stripes instead of one, in a
// kernel as in g++ (lanes.h): the same bits as wide_tile.h with fewer words of shared memory and
// fewer instructions for a product. Of 16 x 8 x 32 products a lane reads 6 words instead of 11: an
// input's scales and bytes serve both pairs, a row's scales two groups of eight inputs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/wide_tile.h"

namespace sluice::backend::cuda {

// Of half a chunk, the scales of an input.
struct HalfInput {
  float d[4], y[4];
};
SLUICE_LANE_FN HalfInput half_input(const uint8_t* inputs, int k, int half) {
  const InputRow row = tile_input(inputs, k);
  HalfInput out;
  StagedLoad::four(row.d + 4 * half, out.d);
  StagedLoad::four(row.y + 4 * half, out.y);
  return out;
}

// A chunk of `pairs` pairs of stripes for `groups` times eight inputs from `base` on: all of them
// use a row's scales, and all pairs an input's.
template <Type type, int pairs, int groups>
SLUICE_LANE_FN void sum_groups(const uint8_t* const (&chunks)[2 * pairs], const float* scales,
                               const uint8_t* inputs, int base, int n_inputs,
                               const ProductStart& start, PerLane<FourSums> (&P)[pairs][groups]) {
  using Scales = WideScales<type>;
  constexpr int kBy = Stripe<type>::kBy;
  PerLane<FourSums> N[pairs][groups];
  SLUICE_UNROLL for (int i = 0; i < pairs * groups; ++i) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
        P[i / groups][i % groups][lane].of[v] = N[i / groups][i % groups][lane].of[v] = 0.0f;
      }
    }
  }
  SLUICE_ROLLED for (int half = 0; half < 2; ++half) {
    PerLane<WeightBytes> weights[2 * pairs];
    PerLane<HalfScales> rows[2 * pairs];
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int s = 0; s < 2 * pairs; ++s) {
        Scales::unpack_half(chunks[s], half, lane, weights[s][lane]);
        rows[s][lane] = Scales::load(scales + (8 * s + lane / 4) * kWideScales, half);
      }
    }
    SLUICE_UNROLL for (int g = 0; g < groups; ++g) {
      PerLane<ColumnBytes> in;
      PerLane<HalfInput> own[2];
      load_columns<kChunk / 2>(inputs + half * (kChunk / 2), kTileInputBytes, base + 8 * g,
                               n_inputs - 1, in);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
          const int k = base + 8 * g + 2 * (lane % 4) + odd;
          own[odd][lane] = half_input(inputs, k < n_inputs ? k : n_inputs - 1, half);
        }
      }
      SLUICE_UNROLL for (int b = 0; b < 4; ++b) {
        SLUICE_UNROLL for (int pair = 0; pair < pairs; ++pair) {
          PerLane<PairProducts<kBy>> products;
          products_of<kBy, Stripe<type>::kIsSigned>(products, b, weights[2 * pair],
                                                    weights[2 * pair + 1], in, start);
          EACH_LANE(lane) {
            SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
              const auto& c = products[lane].c;
              const HalfInput& of = own[v % 2][lane];
              const HalfScales& row = rows[2 * pair + v / 2][lane];
              float &sum = P[pair][g][lane].of[v], &least = N[pair][g][lane].of[v];
              sum = Scales::add(sum, row, b, c[0][v], c[32 / kBy - 1][v], of.d[b]);
              least = Scales::add_min(least, row, b, of.y[b]);
            }
          }
        }
      }
    }
  }
  SLUICE_UNROLL for (int i = 0; i < pairs * groups; ++i) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
        const float* const row = scales + (8 * (2 * (i / groups) + v / 2) + lane / 4) * kWideScales;
        float& sum = P[i / groups][i % groups][lane].of[v];
        sum = Scales::end(row, sum, N[i / groups][i % groups][lane].of[v]);
      }
    }
  }
}

// The sums of those inputs, and the chunk's.
template <Type type, int pairs, int groups>
SLUICE_LANE_FN void add_groups(const uint8_t* const (&chunks)[2 * pairs], const float* scales,
                               const uint8_t* inputs, int base, int n_inputs,
                               const ProductStart& start, float* sums, int height) {
  PerLane<FourSums> got[pairs][groups];
  sum_groups<type, pairs, groups>(chunks, scales, inputs, base, n_inputs, start, got);
  SLUICE_UNROLL for (int i = 0; i < pairs * groups; ++i) {
    const int pair = i / groups, g = i % groups;
    if (base + 8 * g >= n_inputs) continue;
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
        float& sum = sums[pair * tile_sums(height) +
                          ((base / 8 + g) * 4 + v % 2 * 2 + v / 2) * kWarp + lane];
        sum = add_rn(sum, got[pair][g][lane].of[v]);
      }
    }
  }
}

// sums + the chunk's; sums (by pair) and scales (kWarpScales floats of room for each pair): of the
// warp.
template <Type type, int pairs>
SLUICE_LANE_FN void add_pairs_chunk(const uint8_t* const (&chunks)[2 * pairs],
                                    const uint8_t* inputs, int n_inputs, float* scales, float* sums,
                                    int height) {
  constexpr int kGroups = 2;
  EACH_LANE(lane) {
    SLUICE_UNROLL for (int s = 0; s < 2 * pairs; ++s) {
      WideScales<type>::prepare(chunks[s], lane / 4, lane % 4,
                                scales + (8 * s + lane / 4) * kWideScales);
    }
  }
  sync_lanes();
  const ProductStart start = product_start();
  int base = 0;
  SLUICE_ROLLED for (; base + 8 < n_inputs; base += 8 * kGroups) {
    add_groups<type, pairs, kGroups>(chunks, scales, inputs, base, n_inputs, start, sums, height);
  }
  if (base < n_inputs) {
    add_groups<type, pairs, 1>(chunks, scales, inputs, base, n_inputs, start, sums, height);
  }
  sync_lanes();
}

}  // namespace sluice::backend::cuda
