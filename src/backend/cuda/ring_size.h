// How large a warp's ring of weights is (weight_ring.cuh), in a kernel as in g++.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace sluice::backend::cuda {

constexpr int kLine = 128;

// A slot that holds n bytes wherever they begin.
constexpr int slot_bytes(int n) { return (n + kLine - 1) / kLine * kLine + kLine; }

// How large the rings of a block are, each warp with one of its own.
struct RingSize {
  int n_slots;
  int slot_size;

  constexpr int slots_bytes(int n_warps) const { return n_warps * n_slots * slot_size; }
  constexpr int barriers_bytes(int n_warps) const { return n_warps * n_slots * 8; }
};

}  // namespace sluice::backend::cuda
