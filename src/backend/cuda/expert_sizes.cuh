// What the launchers of the experts' kernels derive from a shape, for one row and for several:
// strides of stripes, slots of weights, numbers of groups. Host code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backend/cuda/experts.h"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/weight_ring.cuh"

namespace sluice::backend::cuda {

// Groups of n_rows rows, at most: every routed expert another one, and the shared one.
inline int most_groups(const ExpertShape& shape, int n_rows) {
  return n_rows * shape.n_used + (shape.shared_d_ff > 0 ? 1 : 0);
}

// Chunks of a unit: fewer where blocks have little shared memory.
template <bool is_roomy>
constexpr int kChunksOfUnit = is_roomy ? kUnitChunks : 2;

struct GateUpSizes {
  GateUp p;
  RowShape shape;
  int64_t stripe_bytes;
};

template <Type type>
GateUpSizes gate_up_sizes(const GateUp& p) {
  return {p, row_shape(p.shape.d_model),
          static_cast<int64_t>(8 * quant::row_bytes(type, p.shape.d_model))};
}

// The step's list in shared memory, all that there is room for; a barrier is to follow.
__device__ __forceinline__ void load_groups(const ExpertGroup* list, int n, ExpertGroup* out) {
  static_assert(sizeof(ExpertGroup) % 16 == 0);
  const int n_pieces = n * static_cast<int>(sizeof(ExpertGroup) / 16);
#pragma unroll 2
  for (int i = static_cast<int>(threadIdx.x); i < n_pieces; i += static_cast<int>(blockDim.x)) {
    reinterpret_cast<uint4*>(out)[i] = load_16_past_l1(reinterpret_cast<const uint4*>(list) + i);
  }
}

// A group's sums of a warp: of its pairs, four to a set, lane (row, i) has pair i's.
struct PairSets {
  static constexpr int kSets = kMaxRows / kInputsAtOnce;
  PerLane<float> of[kSets];

  // use(pair, sum) in the lanes that have one. (One or two pairs' sums stand in several lanes.)
  template <typename Use>
  __device__ __forceinline__ void each(int n_pairs, int lane, const Use& use) const {
#pragma unroll
    for (int k = 0; k < kSets; ++k) {
      if (kInputsAtOnce * k >= n_pairs) break;
      const int pair = kInputsAtOnce * k + lane % 4;
      if (pair < n_pairs) use(pair, of[k].value);
    }
  }
};

// Adds a unit's chunks to the sums of all pairs, one at least; rows(k) is pair k's input. ready: as
// of add_unit().
template <Type type, typename Load, typename Rows, typename AreReady>
__device__ __forceinline__ void add_pairs(Unit unit, const RowShape& shape, int n_pairs,
                                          PairSets& acc, const Rows& rows, const AreReady& ready) {
  if (n_pairs == 1) return add_unit<type, Load, 1>(unit, shape, rows, acc.of[0], ready);
  if (n_pairs == 2) return add_unit<type, Load, 2>(unit, shape, rows, acc.of[0], ready);
  unit.data = ready(unit.data);
#pragma unroll 1
  for (int first = 0; first < n_pairs; first += kInputsAtOnce) {
    PerLane<float> sum{};
#pragma unroll
    for (int k = 0; k < PairSets::kSets; ++k) {
      if (kInputsAtOnce * k == first) sum = acc.of[k];
    }
    add_unit<type, Load, kInputsAtOnce>(
        unit, shape, [&](int k) { return rows(min(first + k, n_pairs - 1)); }, sum);
#pragma unroll
    for (int k = 0; k < PairSets::kSets; ++k) {
      if (kInputsAtOnce * k == first) acc.of[k] = sum;
    }
  }
}

// Leaves what a warp has read over the link in the device's memory too; multiples of 16 bytes.
__device__ __forceinline__ void leave_copy(uint8_t* to, const uint8_t* from, int n_bytes,
                                           int lane) {
#pragma unroll 1
  for (int i = 16 * lane; i < n_bytes; i += 16 * kWarp) {
    *reinterpret_cast<uint4*>(to + i) = *reinterpret_cast<const uint4*>(from + i);
  }
}

struct DownSizes {
  Down p;
  RowShape shape;
  RowShape shared_shape;
  int64_t stripe_bytes;
  int64_t shared_stripe_bytes;
  RingSize ring;
};

// n_warps of a block take a group each; most_stages: units that a warp asks for ahead.
template <Type type, bool is_roomy = true>
DownSizes down_sizes(const Down& p, int n_warps, int most_stages) {
  constexpr int kChunks = kChunksOfUnit<is_roomy>;
  DownSizes s{};
  s.p = p;
  s.shape = row_shape(p.shape.d_ff);
  s.shared_shape = row_shape(std::max(p.shape.shared_d_ff, 32));
  s.stripe_bytes = static_cast<int64_t>(8 * quant::row_bytes(type, p.shape.d_ff));
  s.shared_stripe_bytes = static_cast<int64_t>(8 * quant::row_bytes(type, p.shape.shared_d_ff));
  const int most = std::min(kChunks, std::max(s.shape.n_chunks, s.shared_shape.n_chunks));
  const int per_warp = (most_groups(p.shape, p.n_rows) + n_warps - 1) / n_warps;
  s.ring.n_slots = std::min(per_warp * ((s.shape.n_chunks + kChunks - 1) / kChunks), most_stages);
  s.ring.slot_size = slot_bytes(static_cast<int>(most * Stripe<type>::chunk_bytes(8)));
  return s;
}

}  // namespace sluice::backend::cuda
