// The experts of steps of more than 16 rows: pairs of expert and row sorted by expert, tiles of
// them for wide_gemm.h, and the sum of their outputs. Pointers are device memory unless it says
// otherwise; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/step_rows.h"
#include "backend/cuda/wide_gemm.h"

namespace sluice::backend::cuda {

// Counting sort. A slot is row * n_used + rank; those of an expert stand in ascending order.
// n_pairs and `told` are mapped memory, for the host; each may be null.
struct SortPairs {
  const int32_t* experts = nullptr;  // [n_slots]
  int n_slots = 0;
  int n_experts = 0;
  int32_t* first = nullptr;    // [n_experts + 1]
  int32_t* slots = nullptr;    // [n_slots]
  int32_t* n_pairs = nullptr;  // [n_experts]

  uint64_t* told = nullptr;  // becomes *step << 32 | layer << 16 when all of it is written
  const uint32_t* step = nullptr;
  uint32_t layer = 0;
};
void sort_pairs(const SortPairs& p, const Launch& how);

// Cuts the pairs of each expert that the table has into tiles of `height` at most.
struct CutTiles {
  const int32_t* first = nullptr;         // as in SortPairs
  const uint8_t* const* table = nullptr;  // [n_experts]: a slot, or null
  int n_experts = 0;
  int height = 0;
  WideTile* tiles = nullptr;  // [most_tiles()]
  int32_t* n_tiles = nullptr;
};
constexpr int most_tiles(int n_slots, int n_experts, int height) {
  return n_slots / height + (n_slots < n_experts ? n_slots : n_experts);
}
void cut_tiles(const CutTiles& p, const Launch& how);

// x[r] += sum_k weights[r][k] outs[r * n_used + k], in order of rank, then the shared expert's: the
// same operations as down's (experts.h). The log is mapped memory, for the host.
struct SumPairs {
  const float* outs = nullptr;            // [n_rows * n_used, d_model], then [n_rows, d_model]
  const float* weights = nullptr;         // [n_rows, n_used]
  const float* shared_weights = nullptr;  // [n_rows]; null: no shared expert
  int n_rows = 0;
  int n_used = 0;
  int d_model = 0;
  float* x = nullptr;  // [n_rows, d_model]

  uint64_t* counts = nullptr;  // a LayerLog, n_words of 8 bytes, all zero but the rows; or null
  int n_words = 0;
  int32_t* n_logged = nullptr;       // of it: rows
  const int32_t* experts = nullptr;  // [n_rows, n_used]
  RoutedPair* routed = nullptr;      // [n_rows, n_used]
};
void sum_pairs(const SumPairs& p, const Launch& how);

}  // namespace sluice::backend::cuda
