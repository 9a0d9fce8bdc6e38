// Attention of a decode step on the device: head norms, rope, append to the paged KV cache, and
// softmax(q k^T / sqrt(head_dim)) v over every earlier position of the row's sequence. Pointers are
// device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "base/step_memory.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

struct Launch;

enum class NormOfHeads { none, per_head, whole };

// A long row is cut into this many splits at most, by its length alone.
constexpr int kMaxSplits = kAttentionSplits;

struct Attend {
  const float* qkv = nullptr;  // [n_rows, qkv_cols()]
  int n_rows = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  bool is_gated = false;  // a head's query is followed by the gate of its output

  NormOfHeads head_norm = NormOfHeads::none;
  const float* q_norm = nullptr;  // [head_dim], or of all heads
  const float* k_norm = nullptr;
  float eps = 0.0f;

  // cos of every pair, then sin of every pair. Pairs are (2j, 2j + 1), or (j, j + n_pairs).
  const float* angles = nullptr;  // [n_rows, 2 n_pairs]
  int n_pairs = 0;
  bool pairs_are_adjacent = false;

  // Rows of one sequence stand side by side, in order of position.
  const int32_t* positions = nullptr;   // [n_rows]
  const int32_t* sequences = nullptr;   // [n_rows]
  const int32_t* n_live = nullptr;      // rows from *n_live on: zeros, nothing stored; null: none
  int max_length = 0;                   // no row is longer: blocks are launched for so many splits
  const int32_t* page_table = nullptr;  // [n_sequences, table_stride]
  int table_stride = 0;
  int page_shift = 0;  // a page holds 1 << page_shift positions

  quant::Type kv_type = quant::Type::f16;  // or bf16
  uint8_t* k = nullptr;                    // pages of [n_kv_heads, 1 << page_shift, head_dim]
  uint8_t* v = nullptr;

  float* out = nullptr;  // [n_rows, n_heads head_dim]; null: int8 alone
  Int8Rows out_int8;     // the same, quantised; empty: f32 alone

  float* partials = nullptr;          // scratch: attend_partials() floats
  unsigned long long* met = nullptr;  // scratch: [n_rows * n_heads], 0 before the first launch
  // How often a block that shares the adding of splits looks whether all others have come: about a
  // millisecond. Then the last of them does its share.
  int most_polls = 2048;

  constexpr int q_stride() const { return is_gated ? 2 * head_dim : head_dim; }
  constexpr int qkv_cols() const { return n_heads * q_stride() + 2 * n_kv_heads * head_dim; }
  // Where a head's gate stands in qkv.
  constexpr int64_t gate_at(int row, int head) const {
    return static_cast<int64_t>(row) * qkv_cols() + head * q_stride() + head_dim;
  }
};
void attend(const Attend& p, const Launch& how);

constexpr int64_t attend_partials(int n_rows, int n_heads, int head_dim) {
  return attention_partials(n_rows, n_heads, head_dim);
}

}  // namespace sluice::backend::cuda
