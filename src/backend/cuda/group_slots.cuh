// From the experts that rows chose to the list of groups, one for each expert that a live row
// chose: by a block of the router, or by every block of gate_up.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {

constexpr int kGroupWarps = 8;
constexpr int kGroupThreads = kGroupWarps * kWarp;
static_assert(kMaxRows * kMaxUsed <= kGroupThreads, "a thread for each slot");

// In shared memory. most: experts that there may be.
template <int most>
struct Choice {
  int32_t ids[kMaxRows * kMaxUsed];
  uint32_t rows[most];                  // bit r: row r chose the expert; zero to begin with
  int16_t group[most];                  // of the expert, if a live row chose it
  int n_starts[kGroupWarps];            // of groups, in a warp's slots
  const uint8_t* table[kGroupThreads];  // the first experts' addresses
};

// What groups are made of besides.
struct Grouping {
  int n_rows, n_live, n_used;
  int64_t up_at, down_at;
  const uint8_t* const* shared;  // gate, up, down of the shared expert; shared[0] may be null
};

// The shared expert, which every live row has chosen.
__device__ __forceinline__ void set_shared_group(const Grouping& g, ExpertGroup& group) {
  group.gate = g.shared[0], group.up = g.shared[1], group.down = g.shared[2];
  group.n_pairs = g.n_live;
  for (int r = 0; r < g.n_live; ++r) {
    group.row[r] = static_cast<int16_t>(r);
    group.slot[r] = static_cast<int16_t>(g.n_rows * g.n_used + r);
  }
}

// Groups in order of the first slot that chose their expert; a thread for each slot. choice.ids and
// choice.table are there; address_of(id): of experts behind the table. The number of groups; a
// barrier is to follow.
template <int most, typename Address>
__device__ __forceinline__ int group_slots(const Grouping& g, Choice<most>& choice,
                                           ExpertGroup* groups, const Address& address_of) {
  const int slot = static_cast<int>(threadIdx.x), r = slot / g.n_used;
  const bool is_live = slot < g.n_rows * g.n_used && r < g.n_live;
  const int id = is_live ? choice.ids[slot] : 0;
  if (is_live) atomicOr(&choice.rows[id], 1u << r);
  __syncthreads();
  // A row chose an expert once at most, so a slot's place is the number of earlier rows.
  const uint32_t rows = is_live ? choice.rows[id] : 0u;
  const int place = __popc(rows & ((1u << r % 32) - 1));
  const bool starts = is_live && place == 0;
  const unsigned in_warp = __ballot_sync(kAllLanes, starts);
  if (lane_index() == 0) choice.n_starts[warp_index()] = __popc(in_warp);
  __syncthreads();
  int n_before = __popc(in_warp & ((1u << lane_index()) - 1)), n_all = 0;
#pragma unroll
  for (int w = 0; w < kGroupWarps; ++w) {
    if (w < warp_index()) n_before += choice.n_starts[w];
    n_all += choice.n_starts[w];
  }
  if (starts) {
    choice.group[id] = static_cast<int16_t>(n_before);
    ExpertGroup& group = groups[n_before];
    const uint8_t* const at = id < kGroupThreads ? choice.table[id] : address_of(id);
    group.gate = at;
    group.up = at ? at + g.up_at : nullptr;
    group.down = at ? at + g.down_at : nullptr;
    group.n_pairs = __popc(rows);
  }
  __syncthreads();
  if (is_live) {
    ExpertGroup& group = groups[choice.group[id]];
    group.row[place] = static_cast<int16_t>(r);
    group.slot[place] = static_cast<int16_t>(slot);
  }
  if (g.shared[0] == nullptr) return n_all;
  if (slot == 0) set_shared_group(g, groups[n_all]);
  return n_all + 1;
}

}  // namespace sluice::backend::cuda
