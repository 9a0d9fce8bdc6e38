// Dot products of the same chunks of two stripes (rows of gate and the same rows of up) with few
// int8 inputs, by one warp: inputs, masks and the walking serve both, and the float chains of both
// run side by side. With one input a warp took 292 instructions for four chunks of a stripe, with
// four 564. For types of blocks of 32 in one part (takes_two); in a kernel as in g++ (lanes.h).
//
// One input: as dot_unit(), for both stripes. Two or four: a product's upper rows are of the first
// stripe, its lower ones of the second, its columns four chunks of two inputs or two chunks of four
// (tensor_core.h), so that every output is used and a lane has four chains.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stripe_dot.h"

namespace sluice::backend::cuda {

template <Type type>
constexpr bool takes_two = Stripe<type>::kBy == 32 && Taken<type>::kParts == 1;

// Chunks first .. first + n - 1 of two stripes; data: of the first of them, of each.
struct TwoUnits {
  const uint8_t* data[2];
  int first;
  int n;

  SLUICE_LANE_FN Unit of(int stripe) const { return {data[stripe], first, n}; }
  // Of those that are not there the last stands for them.
  SLUICE_LANE_FN int there(int at) const { return at < n ? at : n - 1; }
};

// The chunk sum of a lane's row of a stripe, where chunk `at` of the units exists.
template <Type type, typename Load>
SLUICE_LANE_FN float sum_of_chunk(const TwoUnits& units, const RowShape& shape, int stripe, int at,
                                  int lane, const int32_t (&sums)[8], const InputScales& scales) {
  return Stripe<type>::template chunk_sum<Load::kWhole>(units.data[stripe] + chunk_offset<type>(at),
                                                        blocks_of<type>(shape, units.first + at),
                                                        lane / 4, sums, scales);
}

// ready(units) says where the weights are, once they are there; called whenever some inputs have
// been requested. take(stripe, chunk, input, lane, sum): of each row (lane / 4) once. before():
// called once, by all lanes, before the first of them.
template <Type type, typename Load, typename Ready, typename Before, typename Take>
SLUICE_LANE_FN void dot_two(TwoUnits units, const RowShape& shape, const InputRow& row,
                            const Ready& ready, Before& before, const Take& take) {
  using T = Taken<type>;
  UnitInput in;
  EACH_LANE(lane) {
    load_inputs_of<type, Load>(row, units.first + units.there(lane / 8), lane, in.bytes[lane]);
    in.scales[lane] = load_scales<Load>(row, units.first + units.there(lane % 4));
  }
  ready(units);
  const typename T::Tables tables;
  LaneSums<type> sums[2];
  SLUICE_UNROLL for (LaneSums<type>& of : sums) of.begin(in.bytes);
  SLUICE_UNROLL for (int c = 0; c < kUnitChunks; ++c) {
    if (c == kUnitChunks - 1 && c >= units.n) break;
    PerLane<InputBytes> masked;
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int k = 0; k < 8; ++k) {
        masked[lane].b[k] = lane / 8 == c ? in.bytes[lane].b[k] : 0u;
      }
    }
    SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
      PerLane<WeightBytes> weights[1];
      unpack_chunk<type, T, Load>(tables, units.of(s), shape, units.there(c), weights);
      sums[s].add(weights, masked);
    }
  }
  PerLane<float> got[2];
  EACH_LANE(lane) {
    const int c = units.there(lane % 4);
    SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
      got[s][lane] = sums[s].template finish<Load::kWhole>(units.data[s] + chunk_offset<type>(c),
                                                           blocks_of<type>(shape, units.first + c),
                                                           lane, in.scales[lane]);
    }
  }
  before();
  EACH_LANE(lane) {
    if (lane % 4 < units.n) {
      SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
        take(s, units.first + lane % 4, 0, lane, got[s][lane]);
      }
    }
  }
}

// The same for two to n inputs, n 2 or 4; rows(k) is input k.
template <Type type, typename Load, int n, typename Rows, typename Ready, typename Before,
          typename Take>
SLUICE_LANE_FN void dot_two(TwoUnits units, const RowShape& shape, int n_inputs, const Rows& rows,
                            const Ready& ready, Before& before, const Take& take) {
  static_assert(takes_two<type> && (n == 2 || n == 4));
  using T = Taken<type>;
  constexpr int kChunks = 8 / n;  // at once
  const auto row = [&](int input) { return rows(input < n_inputs ? input : n_inputs - 1); };
  const typename T::Tables tables;
  bool is_first = true;
  SLUICE_ROLLED for (int from = 0; from < units.n; from += kChunks) {
    PerLane<ColumnBytes> in;
    PerLane<PairProducts<32>> products[8];
    EACH_LANE(lane) {
      const int column = lane / 4, at = units.there(from + column / n);
      const int8_t* const q =
          row(column % n).q + Load::kChunkStride * (units.first + at) + 4 * (lane % 4);
      SLUICE_UNROLL for (int k = 0; k < 16; ++k) in[lane].b[k] = Load::word(q + 16 * k);
      SLUICE_UNROLL for (auto& of : products) {
        SLUICE_UNROLL for (int32_t& v : of[lane].c[0]) v = 0;
      }
    }
    ready(units);
    SLUICE_UNROLL for (int c = 0; c < kChunks; ++c) {
      if (c == kChunks - 1 && from + c >= units.n) break;
      PerLane<WeightBytes> first[1], second[1];
      unpack_chunk<type, T, Load>(tables, units.of(0), shape, units.there(from + c), first);
      unpack_chunk<type, T, Load>(tables, units.of(1), shape, units.there(from + c), second);
      PerLane<ColumnBytes> masked;
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int k = 0; k < 16; ++k) {
          masked[lane].b[k] = lane / 4 / n == c ? in[lane].b[k] : 0u;
        }
      }
      SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
        add_pair<32, T::kIsSigned>(products[b], b, first[0], second[0], masked);
      }
    }
    // All four before the first is taken: what they share is read once.
    PerLane<float> got[2][2];  // odd inputs, stripe
    EACH_LANE(lane) {
      const int there = units.there(from + 2 * (lane % 4) / n);
      SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
        const InputScales scales =
            load_scales<Load>(row((2 * (lane % 4) + odd) % n), units.first + there);
        SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
          int32_t sums[8];
          SLUICE_UNROLL for (int b = 0; b < 8; ++b) sums[b] = products[b][lane].c[0][2 * s + odd];
          got[odd][s][lane] = sum_of_chunk<type, Load>(units, shape, s, there, lane, sums, scales);
        }
      }
    }
    if (is_first) before();
    is_first = false;
    EACH_LANE(lane) {
      const int at = from + 2 * (lane % 4) / n;
      SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
        const int input = (2 * (lane % 4) + odd) % n;
        if (at >= units.n || input >= n_inputs) continue;
        SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
          take(s, units.first + at, input, lane, got[odd][s][lane]);
        }
      }
    }
  }
}

}  // namespace sluice::backend::cuda
