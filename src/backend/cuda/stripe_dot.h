// Dot products of a stripe with int8 inputs, by one warp: the numeric contract's chunk sums, for
// all types that are woven into stripes. The work comes in units: up to four chunks (256 columns of
// eight weight rows) that follow each other in a stripe.
//
// One input (dot_unit): four chunks share the columns of a tensor core's product, and an input is
// zero in the columns of other chunks. Lane (row = lane / 4, i = lane % 4) ends with the sum of
// chunk i, so the four float chains of a unit run side by side and nothing is exchanged.
// Four inputs (dot_unit_4): chunk by chunk; lane (row, i) ends with the chunk's sum for input i.
// 16 inputs are four groups of four that share a chunk's unpacked weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stripe_types.h"

namespace sluice::backend::cuda {

constexpr int kChunk = 256;       // columns
constexpr int kUnitChunks = 4;    // chunks of a unit, at most
constexpr int kInputsAtOnce = 4;  // of dot_unit_4

// The chunks of a row of n_cols weights.
struct RowShape {
  int n_chunks;
  int last_blocks;  // blocks of 32 in the last chunk: 1..8, 8 for super-blocks

  constexpr int n_blocks(int chunk) const { return chunk == n_chunks - 1 ? last_blocks : 8; }
  constexpr int n_units() const { return (n_chunks + kUnitChunks - 1) / kUnitChunks; }
};

constexpr RowShape row_shape(int64_t n_cols) {
  const auto n_chunks = static_cast<int>((n_cols + kChunk - 1) / kChunk);
  return {n_chunks, static_cast<int>((n_cols - int64_t{kChunk} * (n_chunks - 1)) / 32)};
}

// Chunks first .. first + n - 1 of a stripe; data: of the first of them, in shared memory.
struct Unit {
  const uint8_t* data;
  int first;
  int n;
};

template <Type type>
SLUICE_LANE_FN int blocks_of(const RowShape& shape, int chunk) {
  return Stripe<type>::kIsSuper ? 8 : shape.n_blocks(chunk);
}

// Bytes before a chunk of a stripe, all of them 8-blocks; and of a unit.
template <Type type>
SLUICE_LANE_FN int64_t chunk_offset(int chunk) {
  return static_cast<int64_t>(chunk) * Stripe<type>::chunk_bytes(8);
}
template <Type type>
SLUICE_LANE_FN int unit_bytes(const RowShape& shape, int first, int n) {
  return static_cast<int>(chunk_offset<type>(n - 1)) +
         Stripe<type>::chunk_bytes(blocks_of<type>(shape, first + n - 1));
}

// A quantised input row whose memory reaches to the end of its last chunk. Load: how a kernel reads
// it (shared memory, or past L1).
struct InputRow {
  const int8_t* q;
  const float* d;
  const float* y;
};

struct PlainLoad {
  static constexpr int kChunkStride = kChunk;  // from one chunk's bytes to the next one's
  SLUICE_LANE_FN static uint32_t word(const void* p) { return *static_cast<const uint32_t*>(p); }
  SLUICE_LANE_FN static void four(const float* p, float* out) {
    SLUICE_UNROLL for (int k = 0; k < 4; ++k) out[k] = p[k];
  }
};

// The bytes of chunk `chunk` that the lane's column needs (tensor_core.h).
template <int by, typename Load>
SLUICE_LANE_FN void load_inputs(const InputRow& in, int chunk, int lane, InputBytes& out) {
  const int8_t* const q = in.q + Load::kChunkStride * chunk + 4 * (lane % 4);
  const int half = lane / 4 % 2;
  SLUICE_UNROLL for (int k = 0; k < 8; ++k) {
    const int at = by == 32 ? 32 * (k / 2 * 2 + half) + 16 * (k % 2) : 32 * k + 16 * half;
    out.b[k] = Load::word(q + at);
  }
}

template <typename Load>
SLUICE_LANE_FN InputScales load_scales(const InputRow& in, int chunk) {
  InputScales out;
  SLUICE_UNROLL for (int k = 0; k < 8; k += 4) {
    Load::four(in.d + 8 * chunk + k, out.d + k);
    Load::four(in.y + 8 * chunk + k, out.y + k);
  }
  return out;
}

// What the products of a lane's chunk add up to, and the sums of its inputs where minima need them.
template <Type type>
struct LaneSums {
  static constexpr bool kSumsInputs = type == Type::q2_k;
  using P = Products<Stripe<type>::kBy == 32 ? 4 : 8>;
  PerLane<P> products;
  PerLane<P> inputs;  // only where kSumsInputs

  SLUICE_LANE_FN void clear() {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (auto& c : products[lane].c) SLUICE_UNROLL for (int& v : c) v = 0;
      if constexpr (kSumsInputs) {
        SLUICE_UNROLL for (auto& c : inputs[lane].c) SLUICE_UNROLL for (int& v : c) v = 0;
      }
    }
  }

  SLUICE_LANE_FN void add(const PerLane<WeightBytes>& w, const PerLane<InputBytes>& in) {
    multiply<Stripe<type>::kBy, Stripe<type>::kIsSigned>(products, w, in);
    if constexpr (kSumsInputs) {
      PerLane<WeightBytes> ones;
      EACH_LANE(lane) { SLUICE_UNROLL for (uint32_t& a : ones[lane].a) a = 0x01010101u; }
      multiply<Stripe<type>::kBy, false>(inputs, ones, in);
    }
  }

  SLUICE_LANE_FN float finish(const uint8_t* chunk, int n_blocks, int lane,
                              const InputScales& scales) const {
    constexpr int kSums = 256 / Stripe<type>::kBy;
    int32_t sums[kSums];
    SLUICE_UNROLL for (int k = 0; k < kSums; ++k) sums[k] = products[lane].c[k / 2][k % 2 * 3];
    if constexpr (kSumsInputs) {
      int32_t of_inputs[kSums];
      SLUICE_UNROLL for (int k = 0; k < kSums; ++k) of_inputs[k] = inputs[lane].c[k / 2][k % 2 * 3];
      return Stripe<type>::chunk_sum(chunk, n_blocks, lane / 4, sums, of_inputs, scales);
    } else {
      return Stripe<type>::chunk_sum(chunk, n_blocks, lane / 4, sums, scales);
    }
  }
};

// The first chunks of a unit, unpacked: what can be done before the input is there. (All four take
// 64 registers, and then kernels of two blocks an SM spill.)
constexpr int kEarlyChunks = 2;
struct UnitWeights {
  PerLane<WeightBytes> chunks[kEarlyChunks];
};

template <Type type, int n_early = kEarlyChunks>
SLUICE_LANE_FN void unpack_unit(const Unit& unit, const RowShape& shape, UnitWeights& out) {
  SLUICE_UNROLL for (int c = 0; c < n_early; ++c) {
    if (c < unit.n) {
      EACH_LANE(lane) {
        Stripe<type>::unpack(unit.data + chunk_offset<type>(c),
                             blocks_of<type>(shape, unit.first + c), lane, out.chunks[c][lane]);
      }
    }
  }
}

// What a lane needs of an input for a unit. It can be read while the weights are on their way.
struct UnitInput {
  PerLane<InputBytes> bytes;
  PerLane<InputScales> scales;
};
template <Type type, typename Load>
SLUICE_LANE_FN void load_unit_input(int first, int n, const InputRow& in, UnitInput& out) {
  EACH_LANE(lane) {
    const int last = n - 1, column_chunk = lane / 8, lane_chunk = lane % 4;
    load_inputs<Stripe<type>::kBy, Load>(in, first + (column_chunk < last ? column_chunk : last),
                                         lane, out.bytes[lane]);
    out.scales[lane] = load_scales<Load>(in, first + (lane_chunk < last ? lane_chunk : last));
  }
}

// One input. sums: lane (row, i) gets the sum of chunk unit.first + i, if i < unit.n. n_early
// chunks of weights are unpacked already, the others are here.
template <Type type, int n_early>
SLUICE_LANE_FN void multiply_unit(const Unit& unit, const RowShape& shape,
                                  const UnitWeights& weights, const UnitInput& in,
                                  PerLane<float>& sums) {
  LaneSums<type> products;
  products.clear();
  SLUICE_UNROLL for (int c = 0; c < kUnitChunks; ++c) {
    if (c < unit.n) {
      PerLane<InputBytes> masked;
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int k = 0; k < 8; ++k) {
          masked[lane].b[k] = lane / 8 == c ? in.bytes[lane].b[k] : 0u;
        }
      }
      if (c < n_early) {
        products.add(weights.chunks[c < kEarlyChunks ? c : 0], masked);
      } else {
        PerLane<WeightBytes> late;
        EACH_LANE(lane) {
          Stripe<type>::unpack(unit.data + chunk_offset<type>(c),
                               blocks_of<type>(shape, unit.first + c), lane, late[lane]);
        }
        products.add(late, masked);
      }
    }
  }
  EACH_LANE(lane) {
    const int c = lane % 4 < unit.n ? lane % 4 : unit.n - 1;
    sums[lane] = products.finish(unit.data + chunk_offset<type>(c),
                                 blocks_of<type>(shape, unit.first + c), lane, in.scales[lane]);
  }
}

template <Type type, typename Load, int n_early = kEarlyChunks>
SLUICE_LANE_FN void dot_unit(const Unit& unit, const RowShape& shape, const UnitWeights& weights,
                             const InputRow& in, PerLane<float>& sums) {
  UnitInput input;
  load_unit_input<type, Load>(unit.first, unit.n, in, input);
  multiply_unit<type, n_early>(unit, shape, weights, input, sums);
}

// acc + the unit's chunks, one after the other; every lane of a row gets the row's.
SLUICE_LANE_FN void add_in_order(const PerLane<float>& sums, int n, PerLane<float>& acc) {
  SLUICE_UNROLL for (int c = 0; c < kUnitChunks; ++c) {
    if (c < n) {
      EACH_LANE(lane) { acc[lane] = add_rn(acc[lane], from_lane(sums, lane / 4 * 4 + c)); }
    }
  }
}

// A chunk's sums for inputs 4 group .. of `n` groups, whose chains run side by side.
template <Type type, typename Load, int n, typename Rows, typename Take>
SLUICE_LANE_FN void dot_groups(const uint8_t* chunk, int at, int n_blocks,
                               const PerLane<WeightBytes>& weights, int group, int n_inputs,
                               const Rows& rows, const Take& take) {
  PerLane<InputBytes> in[n];
  PerLane<InputScales> scales[n];
  LaneSums<type> products[n];
  SLUICE_UNROLL for (int g = 0; g < n; ++g) {
    EACH_LANE(lane) {
      const int last = n_inputs - 1, column = (group + g) * kInputsAtOnce + lane / 8,
                own = (group + g) * kInputsAtOnce + lane % 4;
      load_inputs<Stripe<type>::kBy, Load>(rows(column < last ? column : last), at, lane,
                                           in[g][lane]);
      scales[g][lane] = load_scales<Load>(rows(own < last ? own : last), at);
    }
  }
  SLUICE_UNROLL for (int g = 0; g < n; ++g) {
    products[g].clear();
    products[g].add(weights, in[g]);
  }
  SLUICE_UNROLL for (int g = 0; g < n; ++g) {
    PerLane<float> sums;
    EACH_LANE(lane) { sums[lane] = products[g].finish(chunk, n_blocks, lane, scales[g][lane]); }
    take(at, group + g, sums);
  }
}

// n_inputs inputs, in groups of four, of which up to `at_once` side by side: rows(k) is input k,
// and take(chunk, group, sums) gets, chunk by chunk in order, sums of lane (row, i) for input 4
// group + i. Inputs from n_inputs on are others again: their sums mean nothing.
template <Type type, typename Load, int at_once, typename Rows, typename Take>
SLUICE_LANE_FN void dot_unit_4(const Unit& unit, const RowShape& shape, int n_inputs,
                               const Rows& rows, const Take& take) {
  SLUICE_ROLLED for (int c = 0; c < unit.n; ++c) {
    const uint8_t* const chunk = unit.data + chunk_offset<type>(c);
    const int at = unit.first + c, n_blocks = blocks_of<type>(shape, at);
    PerLane<WeightBytes> weights;
    EACH_LANE(lane) { Stripe<type>::unpack(chunk, n_blocks, lane, weights[lane]); }
    int group = 0;
    if constexpr (at_once > 1) {
      SLUICE_ROLLED for (; (group + at_once - 1) * kInputsAtOnce < n_inputs; group += at_once) {
        dot_groups<type, Load, at_once>(chunk, at, n_blocks, weights, group, n_inputs, rows, take);
      }
    }
    SLUICE_ROLLED for (; group * kInputsAtOnce < n_inputs; ++group) {
      dot_groups<type, Load, 1>(chunk, at, n_blocks, weights, group, n_inputs, rows, take);
    }
  }
}

}  // namespace sluice::backend::cuda
