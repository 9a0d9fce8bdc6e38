// Dot products of a stripe with int8 inputs, by one warp: the numeric contract's chunk sums, for
// all types that are woven into stripes. The work comes in units: up to four chunks (256 columns of
// eight weight rows) that follow each other in a stripe.
//
// One input (dot_unit): four chunks share the columns of a tensor core's product, and an input is
// zero in the columns of other chunks. Lane (row = lane / 4, i = lane % 4) ends with the sum of
// chunk i, so the four float chains of a unit run side by side and nothing is exchanged.
// Two or four inputs (add_unit): two chunks for two of them at a time, or one chunk for four.
// Eight inputs (dot_pair): a chunk of two stripes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stripe_sums.h"

namespace sluice::backend::cuda {

constexpr int kChunk = 256;       // columns
constexpr int kUnitChunks = 4;    // chunks of a unit, at most
constexpr int kInputsAtOnce = 4;  // of add_unit, at most

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
  static constexpr bool kWhole = true;  // memory of weights reaches to the end of their last chunk
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
// The same, in the order that the type's weights have.
template <Type type, typename Load>
SLUICE_LANE_FN void load_inputs_of(const InputRow& in, int chunk, int lane, InputBytes& out) {
  load_inputs<Stripe<type>::kBy, Load>(in, chunk, lane, out);
  if constexpr (Taken<type>::kMixes) {
    SLUICE_UNROLL for (int k = 0; k < 8; k += 2) {
      const uint32_t low = out.b[k], high = out.b[k + 1];
      out.b[k] = pick_bytes(low, high, 0x5140u);
      out.b[k + 1] = pick_bytes(low, high, 0x7362u);
    }
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

// The first chunks of a unit, unpacked: what can be done before the input is there. (All four take
// 64 registers, and then kernels of two blocks an SM spill.)
struct UnitWeights {
  static constexpr int kMost = 2;
  PerLane<WeightBytes> of[kMost];  // by chunk, then by part
};
template <Type type>
constexpr int kEarlyChunks = UnitWeights::kMost / Taken<type>::kParts;

// Chunk `at` of a unit.
template <Type type, typename T, typename Load>
SLUICE_LANE_FN void unpack_chunk(const typename T::Tables& tables, const Unit& unit,
                                 const RowShape& shape, int at, PerLane<WeightBytes>* parts) {
  EACH_LANE(lane) {
    T::template unpack<Load::kWhole>(tables, unit.data + chunk_offset<type>(at),
                                     blocks_of<type>(shape, unit.first + at), lane, parts[0][lane],
                                     parts[T::kParts - 1][lane]);
  }
}

template <Type type, int n_early = kEarlyChunks<type>>
SLUICE_LANE_FN void unpack_unit(const Unit& unit, const RowShape& shape, UnitWeights& out) {
  using T = Taken<type>;
  const typename T::Tables tables;
  SLUICE_UNROLL for (int c = 0; c < n_early; ++c) {
    unpack_chunk<type, T, PlainLoad>(tables, unit, shape, c < unit.n ? c : unit.n - 1,
                                     out.of + c * T::kParts);
  }
}

// What a lane needs of its inputs for a unit.
struct UnitInput {
  PerLane<InputBytes> bytes;
  PerLane<InputScales> scales;
};

// One input. sums: lane (row, i) gets the sum of chunk unit.first + i, if i < unit.n. n_early
// chunks of weights are unpacked already, the others are here.
template <Type type, typename Load, int n_early = kEarlyChunks<type>>
SLUICE_LANE_FN void dot_unit(const Unit& unit, const RowShape& shape, const UnitWeights& weights,
                             const InputRow& row, PerLane<float>& sums) {
  using T = Taken<type>;
  UnitInput in;
  EACH_LANE(lane) {
    const int last = unit.n - 1, column_chunk = lane / 8, lane_chunk = lane % 4;
    load_inputs_of<type, Load>(row, unit.first + (column_chunk < last ? column_chunk : last), lane,
                               in.bytes[lane]);
    in.scales[lane] = load_scales<Load>(row, unit.first + (lane_chunk < last ? lane_chunk : last));
  }
  const typename T::Tables tables;
  LaneSums<type> products;
  products.begin(in.bytes);
  // The last chunk stands for those that are not there: nobody uses their sums, and there is no
  // branch between the products but before the last.
  SLUICE_UNROLL for (int c = 0; c < kUnitChunks; ++c) {
    if (c == kUnitChunks - 1 && c >= unit.n) break;
    PerLane<InputBytes> masked;
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int k = 0; k < 8; ++k) {
        masked[lane].b[k] = lane / 8 == c ? in.bytes[lane].b[k] : 0u;
      }
    }
    if (c < n_early) {
      products.add(weights.of + (c < n_early ? c : 0) * T::kParts, masked);
    } else {
      PerLane<WeightBytes> late[T::kParts];
      unpack_chunk<type, T, Load>(tables, unit, shape, c < unit.n ? c : unit.n - 1, late);
      products.add(late, masked);
    }
  }
  EACH_LANE(lane) {
    const int c = lane % 4 < unit.n ? lane % 4 : unit.n - 1;
    sums[lane] = products.template finish<Load::kWhole>(unit.data + chunk_offset<type>(c),
                                                        blocks_of<type>(shape, unit.first + c),
                                                        lane, in.scales[lane]);
  }
}

// acc + the unit's chunks, one after the other; every lane of a row gets the row's.
SLUICE_LANE_FN void add_in_order(const PerLane<float>& sums, int n, PerLane<float>& acc) {
  SLUICE_UNROLL for (int c = 0; c < kUnitChunks; ++c) {
    EACH_LANE(lane) {
      const float more = add_rn(acc[lane], from_lane(sums, lane / 4 * 4 + c));
      acc[lane] = c < n ? more : acc[lane];
    }
  }
}

// Weights that are there; others may have to be awaited.
struct Ready {
  static constexpr bool kAlways = true;
  SLUICE_LANE_FN const uint8_t* operator()(const uint8_t* data) const { return data; }
};

// A pass over chunks first .. of a unit, for n inputs: 4 / n chunks for each of them, so that every
// lane has a sum to make.
template <Type type, typename Load, int n>
struct UnitPass {
  using T = Taken<type>;
  static constexpr int kAtOnce = kUnitChunks / n;  // chunks
  UnitInput in;

  template <typename Rows>
  SLUICE_LANE_FN void load(const Unit& unit, int first, const Rows& rows) {
    const int last = unit.n - 1;
    EACH_LANE(lane) {
      const int column_chunk = first + lane / 8 / n, own_chunk = first + lane % 4 / n;
      load_inputs_of<type, Load>(rows(lane / 8 % n),
                                 unit.first + (column_chunk < last ? column_chunk : last), lane,
                                 in.bytes[lane]);
      in.scales[lane] =
          load_scales<Load>(rows(lane % n), unit.first + (own_chunk < last ? own_chunk : last));
    }
  }

  SLUICE_LANE_FN void add(const Unit& unit, const RowShape& shape, int first,
                          PerLane<float>& acc) const {
    const int last = unit.n - 1;
    const typename T::Tables tables;
    LaneSums<type> products;
    products.begin(in.bytes);
    // The last chunk stands for those that are not there: nobody uses their sums, and there is no
    // branch between the products but before the last.
    SLUICE_UNROLL for (int c = 0; c < kAtOnce; ++c) {
      const int at = first + c < last ? first + c : last;
      if (c > 0 && c == kAtOnce - 1 && first + c > last) break;
      PerLane<WeightBytes> weights[T::kParts];
      PerLane<InputBytes> masked;
      unpack_chunk<type, T, Load>(tables, unit, shape, at, weights);
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int k = 0; k < 8; ++k) {
          masked[lane].b[k] = lane / 8 / n == c ? in.bytes[lane].b[k] : 0u;
        }
      }
      products.add(weights, masked);
    }
    PerLane<float> sums;
    EACH_LANE(lane) {
      const int own = first + lane % 4 / n, c = own < last ? own : last;
      sums[lane] = products.template finish<Load::kWhole>(unit.data + chunk_offset<type>(c),
                                                          blocks_of<type>(shape, unit.first + c),
                                                          lane, in.scales[lane]);
    }
    SLUICE_UNROLL for (int c = 0; c < kAtOnce; ++c) {
      EACH_LANE(lane) {
        const int from = lane / 4 * 4 + c * n + lane % n;
        const float more = add_rn(acc[lane], n == 4 ? sums[lane] : from_lane(sums, from));
        acc[lane] = first + c < unit.n ? more : acc[lane];
      }
    }
  }
};

// n inputs (1, 2 or 4); rows(k) is input k. acc: lane (row, i) has input i % n's; the unit's chunks
// are added to it, one after the other. ready(unit.data): where the weights are, once they are
// there; asked when the first inputs have been requested.
template <Type type, typename Load, int n, typename Rows, typename AreReady = Ready>
SLUICE_LANE_FN void add_unit(Unit unit, const RowShape& shape, const Rows& rows,
                             PerLane<float>& acc, const AreReady& ready = {}) {
  UnitPass<type, Load, n> pass;
  int first = 0;
  if constexpr (!AreReady::kAlways) {
    pass.load(unit, 0, rows);
    unit.data = ready(unit.data);
    pass.add(unit, shape, 0, acc);
    if constexpr (n == 1) return;
    first = pass.kAtOnce;
  }
  SLUICE_ROLLED for (; first < unit.n; first += pass.kAtOnce) {
    pass.load(unit, first, rows);
    pass.add(unit, shape, first, acc);
  }
}

// ---- Chunk `at` of two stripes for eight inputs at a time: all outputs of a product are used, and
// every scale that a lane reads serves two of them.

constexpr int kPairInputs = 8;

// What the products of two stripes add up to, and what minima by 16 add up to: of the first stripe
// for a lane's even and odd input, then of the second.
template <Type type>
struct PairSums {
  static constexpr int kBy = Stripe<type>::kBy;
  static constexpr bool kSumsInputs = type == Type::q2_k;
  struct Sums {
    int32_t of[4][8];
  };
  PerLane<Sums> sums, mins;  // mins: only where kSumsInputs

  SLUICE_LANE_FN void set(const uint8_t* const (&chunks)[2], const PerLane<WeightBytes>& first,
                          const PerLane<WeightBytes>& second, const PerLane<ColumnBytes>& in) {
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      PerLane<PairProducts<kBy>> products, inputs;
      multiply_pair<kBy, Stripe<type>::kIsSigned>(products, b, first, second, in);
      if constexpr (kSumsInputs) {
        PerLane<WeightBytes> ones;
        EACH_LANE(lane) { SLUICE_UNROLL for (uint32_t& a : ones[lane].a) a = 0x01010101u; }
        multiply_pair<kBy, false>(inputs, b, ones, ones, in);
      }
      EACH_LANE(lane) {
        SLUICE_UNROLL for (int v = 0; v < 4; ++v) {
          if constexpr (kBy == 32) {
            sums[lane].of[v][b] = products[lane].c[0][v];
          } else {
            const GroupScales scales = Stripe<type>::scales(chunks[v / 2], lane / 4);
            sums[lane].of[v][b] =
                Stripe<type>::block_sum(scales, b, products[lane].c[0][v], products[lane].c[1][v]);
            if constexpr (kSumsInputs) {
              mins[lane].of[v][b] =
                  Stripe<type>::block_min(scales, b, inputs[lane].c[0][v], inputs[lane].c[1][v]);
            }
          }
        }
      }
    }
  }

  SLUICE_LANE_FN float finish(const uint8_t* chunk, int n_blocks, int lane, int v,
                              const InputScales& scales) const {
    if constexpr (kBy == 32) {
      return Stripe<type>::chunk_sum(chunk, n_blocks, lane / 4, sums[lane].of[v], scales);
    } else if constexpr (kSumsInputs) {
      return Stripe<type>::chunk_sum(chunk, lane / 4, sums[lane].of[v], mins[lane].of[v], scales);
    } else {
      return Stripe<type>::chunk_sum(chunk, lane / 4, sums[lane].of[v], scales);
    }
  }
};

// chunks: of each stripe; rows(k) is input k. take(k, stripe, sums): lane (row, i) has the sum of
// that stripe's row for input k + 2 i; k is 0 and 1, 8 and 9. Inputs from n_inputs on are others
// again: their sums mean nothing.
template <Type type, typename Load, typename Rows, typename Take>
SLUICE_LANE_FN void dot_pair(const uint8_t* const (&chunks)[2], int at, int n_blocks, int n_inputs,
                             const Rows& rows, const Take& take) {
  PerLane<WeightBytes> first, second;
  EACH_LANE(lane) {
    Stripe<type>::unpack(chunks[0], n_blocks, lane, first[lane]);
    Stripe<type>::unpack(chunks[1], n_blocks, lane, second[lane]);
  }
  SLUICE_ROLLED for (int base = 0; base < n_inputs; base += kPairInputs) {
    const int last = n_inputs - 1;
    PerLane<ColumnBytes> in;
    PairSums<type> pair;
    EACH_LANE(lane) {
      const int column = base + lane / 4;
      const int8_t* const q =
          rows(column < last ? column : last).q + Load::kChunkStride * at + 4 * (lane % 4);
      SLUICE_UNROLL for (int k = 0; k < 16; ++k) in[lane].b[k] = Load::word(q + 16 * k);
    }
    pair.set(chunks, first, second, in);
    PerLane<float> sums[2][2];  // odd inputs, stripe
    EACH_LANE(lane) {
      SLUICE_UNROLL for (int odd = 0; odd < 2; ++odd) {
        const int own = base + 2 * (lane % 4) + odd;
        const InputScales scales = load_scales<Load>(rows(own < last ? own : last), at);
        SLUICE_UNROLL for (int s = 0; s < 2; ++s) {
          sums[odd][s][lane] = pair.finish(chunks[s], n_blocks, lane, 2 * s + odd, scales);
        }
      }
    }
    SLUICE_UNROLL for (int v = 0; v < 4; ++v) take(base + v / 2, v % 2, sums[v / 2][v % 2]);
  }
}

}  // namespace sluice::backend::cuda
