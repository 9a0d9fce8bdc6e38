// See delta_rule.h: the loops, for lanes of sixteen, which each of two files has of its own and in
// a namespace of its own, so that none of these functions is shared by files for different CPUs.
//
// One pass over S for a token: it decays, the token enters, and from the new S come both what the
// token reads and what the next one will find at its key. So S is read and written once a token,
// and the sums are those of two passes, to the bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

#include "backend/cpu/delta_rule.h"
#include "backend/cpu/kernels/lanes.h"

namespace sluice::backend::cpu {
namespace {

// Lanes: sixteen, in kRegisters Vectors of kLanes. load, store; load_half, store_half for a single
// Vector, of which eight lanes count and the others are 0; all (a number in all lanes), product,
// fma, and store_sums (of four columns, each in its kRegisters). kColumns go side by side.
template <typename Lanes>
struct DeltaRule {
  using Vector = typename Lanes::Vector;
  static constexpr int kColumns = Lanes::kColumns, kRegisters = Lanes::kRegisters;
  using Sums = Vector[kRegisters];

  struct Whole {
    SLUICE_INLINE static Vector load(const float* x) { return Lanes::load(x); }
    SLUICE_INLINE static void store(const Vector& v, float* out) { Lanes::store(v, out); }
  };
  struct Half {
    SLUICE_INLINE static Vector load(const float* x) { return Lanes::load_half(x); }
    SLUICE_INLINE static void store(const Vector& v, float* out) { Lanes::store_half(v, out); }
  };

  // Calls step(dimension, register, part) for all dimensions; only the last eight are a half.
  template <typename Step>
  SLUICE_INLINE static void for_dims(int64_t n_dims, const Step& step) {
    int64_t i = 0;
    for (; i + 16 <= n_dims; i += 16) {
      step(i, 0, Whole{});
      if constexpr (kRegisters > 1) step(i + 8, 1, Whole{});
    }
    if (i < n_dims) step(i, 0, Half{});
  }

  // What the first token finds at its key.
  static void find(const float* k, const DeltaColumns& s, float* found) {
    for (int j = 0; j < s.n_columns; j += 2) {
      Sums sums[2] = {};
      const float* const column = s.from + j * s.n_dims;
      for_dims(s.n_dims, [&](int64_t i, int r, auto part) SLUICE_INLINE {
        const Vector keys = part.load(k + i);
#pragma GCC unroll 2
        for (int c = 0; c < 2; ++c) {
          sums[c][r] = Lanes::fma(part.load(column + c * s.n_dims + i), keys, sums[c][r]);
        }
      });
      float both[4];
      Lanes::store_sums(sums[0], sums[1], sums[0], sums[1], both);
      found[j] = both[0], found[j + 1] = both[1];
    }
  }

  // found: what the token finds at its key; becomes what the next one finds at next_k.
  template <bool has_next>
  static void update(const DeltaToken& token, const float* next_k, const DeltaColumns& s,
                     float* found) {
    const Vector decay = Lanes::all(token.decay);
    for (int j = 0; j < s.n_columns; j += kColumns) {
      Vector enters[kColumns];
      Sums reads[kColumns] = {}, finds[kColumns] = {};
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        const float enter = token.beta * std::fma(-token.decay, found[j + c], token.v[j + c]);
        if (token.entered) token.entered[j + c] = enter;
        enters[c] = Lanes::all(enter);
      }
      const float* const from = s.from + j * s.n_dims;
      float* const to = s.to + j * s.n_dims;
      for_dims(s.n_dims, [&](int64_t i, int r, auto part) SLUICE_INLINE {
        const Vector k = part.load(token.k + i), q = part.load(token.q + i);
        const Vector next = has_next ? part.load(next_k + i) : Vector{};
#pragma GCC unroll 4
        for (int c = 0; c < kColumns; ++c) {
          const Vector stays = Lanes::product(part.load(from + c * s.n_dims + i), decay);
          const Vector now = Lanes::fma(enters[c], k, stays);
          part.store(now, to + c * s.n_dims + i);
          reads[c][r] = Lanes::fma(now, q, reads[c][r]);
          if (has_next) finds[c][r] = Lanes::fma(now, next, finds[c][r]);
        }
      });
#pragma GCC unroll 2
      for (int c = 0; c < kColumns; c += 2) {
        float sums[4];
        Lanes::store_sums(reads[c], reads[c + 1], finds[c], finds[c + 1], sums);
        token.o[j + c] = sums[0], token.o[j + c + 1] = sums[1];
        if (has_next) found[j + c] = sums[2], found[j + c + 1] = sums[3];
      }
    }
  }

  static void run(const DeltaToken* tokens, int64_t n_tokens, DeltaColumns s) {
    if (!s.from) {
      for (int64_t i = 0; i < s.n_columns * s.n_dims; ++i) s.to[i] = 0.0f;
      s.from = s.to;
    }
    float found[kDeltaColumns];
    find(tokens[0].k, s, found);
    for (int64_t t = 0; t + 1 < n_tokens; ++t) {
      update<true>(tokens[t], tokens[t + 1].k, s, found);
      s.from = s.to;
    }
    update<false>(tokens[n_tokens - 1], nullptr, s, found);
  }
};

}  // namespace
}  // namespace sluice::backend::cpu
