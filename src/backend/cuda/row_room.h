// What the kernels of a single row ask of a block's shared memory: their rings of weights are
// smaller where a block has less of it (64 KB on sm_75, 99 KB on sm_86, 89 and 120). Host code,
// also in g++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

#include "backend/cuda/ring_size.h"
#include "backend/cuda/stage_rows.h"
#include "backend/cuda/stripe_dispatch.h"

namespace sluice::backend::cuda {

constexpr int kRowWarps = 8;
constexpr int kMostRowColumns = 8192;  // of project_row and of NormedRow

// Memory that such a kernel has besides (its __shared__ variables: 3 KB of gate_up_row) comes out
// of the same limit.
constexpr int kFixedShared = 4 << 10;
constexpr int row_room(int shared_bytes) { return shared_bytes - kFixedShared; }

template <Type type>
constexpr int unit_slot_bytes(int n_chunks) {
  return slot_bytes(static_cast<int>(n_chunks * Stripe<type>::chunk_bytes(8)));
}

// Of project_row: a unit of four chunks for each warp, and the row.
inline int project_row_bytes(Type type, int n_cols) {
  int unit = 0;
  with_stripe_type(type, [&]<Type t>() { unit = unit_slot_bytes<t>(kUnitChunks); });
  return kRowWarps * unit + staged_row_bytes(row_shape(n_cols).n_chunks);
}

// How the experts' kernels stream their weights: in units of so many chunks.
struct RowRing {
  int unit_chunks;
  RingSize size;

  constexpr bool is_roomy() const { return unit_chunks == kUnitChunks; }
  constexpr int n_bytes() const { return size.slots_bytes(kRowWarps); }
};

// n_slots to a warp if that is possible, in units of half as many chunks where `room` asks for it:
// so the next unit can be on its way. most_chunks: of a row of weights.
template <Type type>
RowRing row_ring(int most_chunks, int n_slots, int room) {
  RowRing ring{};
  for (const int n : {kUnitChunks, kUnitChunks / 2}) {
    ring = {n, {n_slots, unit_slot_bytes<type>(std::min(n, most_chunks))}};
    if (ring.n_bytes() <= room) return ring;
  }
  ring.size.n_slots = 1;
  return ring;
}

}  // namespace sluice::backend::cuda
