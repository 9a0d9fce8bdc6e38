// What tensor cores make of a chunk's weights and few inputs, by one warp: its block sums, and of
// those the chunk's sum (stripe_types.h). Part of stripe_dot.h.
//
// With few inputs a kernel is bound by the instructions that take weights apart, so some types are
// taken apart in another way than stripe_types.h has them. A table of 16 values is two tables of
// eight, of the values above zero and of the others', each zero where the other has a value: a
// weight is a difference, and so is its product.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/stripe_types.h"

namespace sluice::backend::cuda {

// How a type's weights are taken apart: as in stripe_types.h, or in another way (below).
template <Type type>
struct AsTheyAre {
  static constexpr int kParts = 1;
  static constexpr bool kIsSigned = Stripe<type>::kIsSigned;
  static constexpr bool kMixes = false;       // inputs are in the order of nibbles
  static constexpr bool kSumsInputs = false;  // by 16
  struct Tables {};                           // made once, for all chunks
  template <bool whole>
  SLUICE_LANE_FN static void unpack(const Tables&, const uint8_t* chunk, int n_blocks, int lane,
                                    WeightBytes& first, WeightBytes&) {
    Stripe<type>::template unpack<whole>(chunk, n_blocks, lane, first);
  }
};
template <Type type>
struct Taken : AsTheyAre<type> {};

// ---- Tables. A word's nibbles are elements 0, 16, 1, 17, 2, ... of four and four, and so are the
// inputs: a table takes four nibbles at a time in their order.

template <Type type>
struct TakenByTable {
  static constexpr int kParts = 2;
  static constexpr bool kIsSigned = false, kMixes = true, kSumsInputs = false;
  static constexpr bool kIsMxfp4 = type == Type::mxfp4;
  struct Tables {
    NibbleTable t = kIsMxfp4 ? mxfp4_table() : iq4_table();
    SLUICE_LANE_FN Tables() {
      SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
        t.plus[k] = kept(t.plus[k]), t.minus[k] = kept(t.minus[k]);
      }
    }
  };

  template <bool whole>
  SLUICE_LANE_FN static void unpack(const Tables& tables, const uint8_t* chunk, int n_blocks,
                                    int lane, WeightBytes& plus, WeightBytes& minus) {
    const NibbleTable& t = tables.t;
    SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
      const uint32_t w = nibbles<whole>(chunk, n_blocks, b, lane), other = w ^ 0x88888888u;
      const uint32_t n = kIsMxfp4 ? w : other, m = kIsMxfp4 ? other : w;
      const int at = 4 * (b / 2) + b % 2;
      SLUICE_UNROLL for (int k = 0; k < 2; ++k) {
        plus.a[at + 2 * k] = pick_bytes(t.plus[0], t.plus[1], n >> 16 * k);
        minus.a[at + 2 * k] = pick_bytes(t.minus[0], t.minus[1], m >> 16 * k);
      }
    }
  }

 private:
  template <bool whole>
  SLUICE_LANE_FN static uint32_t nibbles(const uint8_t* chunk, int n_blocks, int b, int lane) {
    using S = Stripe<type>;
    if constexpr (type == Type::iq4_xs) {
      return word(chunk, 2 + 4 * b + lane % 4, lane / 4);
    } else {
      return word(S::words(chunk, n_blocks, S::template readable<whole>(b, n_blocks)), lane % 4,
                  lane / 4);
    }
  }
};
template <>
struct Taken<Type::iq4_nl> : TakenByTable<Type::iq4_nl> {};
template <>
struct Taken<Type::iq4_xs> : TakenByTable<Type::iq4_xs> {};
template <>
struct Taken<Type::mxfp4> : TakenByTable<Type::mxfp4> {};

template <>
struct Taken<Type::q2_k> : AsTheyAre<Type::q2_k> {
  static constexpr bool kSumsInputs = true;  // for its minima
};

// What the products of a lane's chunk add up to, and the sums of its inputs where they are needed.
template <Type type>
struct LaneSums {
  using T = Taken<type>;
  static constexpr int kBy = Stripe<type>::kBy, kParts = T::kParts;
  using P = Products<kBy == 32 ? 4 : 8>;
  PerLane<P> products[kParts];
  PerLane<P> inputs;  // only where kSumsInputs

  // in: of every lane's own column, not only of one chunk's.
  SLUICE_LANE_FN void begin(const PerLane<InputBytes>& in) {
    SLUICE_UNROLL for (auto& part : products) clear(part);
    if constexpr (T::kSumsInputs) {
      PerLane<WeightBytes> ones;
      EACH_LANE(lane) { SLUICE_UNROLL for (uint32_t& a : ones[lane].a) a = 0x01010101u; }
      clear(inputs);
      multiply<kBy, false>(inputs, ones, in);
    }
  }

  SLUICE_LANE_FN void add(const PerLane<WeightBytes>* parts, const PerLane<InputBytes>& in) {
    SLUICE_UNROLL for (int k = 0; k < kParts; ++k) {
      multiply<kBy, T::kIsSigned>(products[k], parts[k], in);
    }
  }

  template <bool whole>
  SLUICE_LANE_FN float finish(const uint8_t* chunk, int n_blocks, int lane,
                              const InputScales& scales) const {
    const auto& c = products[0][lane].c;
    int32_t sums[8];
    if constexpr (kBy == 32) {
      SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
        sums[b] = c[b / 2][b % 2 * 3];
        if constexpr (kParts == 2) sums[b] -= products[kParts - 1][lane].c[b / 2][b % 2 * 3];
      }
      return Stripe<type>::template chunk_sum<whole>(chunk, n_blocks, lane / 4, sums, scales);
    } else {
      const GroupScales of_groups = Stripe<type>::scales(chunk, lane / 4);
      SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
        sums[b] = Stripe<type>::block_sum(of_groups, b, c[b][0], c[b][3]);
      }
      if constexpr (T::kSumsInputs) {
        const auto& in = inputs[lane].c;
        int32_t mins[8];
        SLUICE_UNROLL for (int b = 0; b < 8; ++b) {
          mins[b] = Stripe<type>::block_min(of_groups, b, in[b][0], in[b][3]);
        }
        return Stripe<type>::chunk_sum(chunk, lane / 4, sums, mins, scales);
      } else {
        return Stripe<type>::chunk_sum(chunk, lane / 4, sums, scales);
      }
    }
  }

 private:
  static SLUICE_LANE_FN void clear(PerLane<P>& sums) {
    EACH_LANE(lane) {
      SLUICE_UNROLL for (auto& c : sums[lane].c) SLUICE_UNROLL for (int& v : c) v = 0;
    }
  }
};

}  // namespace sluice::backend::cuda
