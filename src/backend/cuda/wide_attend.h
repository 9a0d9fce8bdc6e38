// Attention of a step of many rows on the device: head norms, rope and append of all rows first,
// then softmax(q k^T / sqrt(head_dim)) v over every earlier position of a row's sequence, rows of
// the same step included. Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/attend.h"
#include "backend/kv_page.h"

namespace sluice::backend::cuda {

// Steps of so many rows, or with so long a text, are computed by groups of warps (group_attend.h),
// where the card has their instructions; others are faster a warp at a time (docs/decisions/0018).
// The two add in different orders, so the choice may not depend on where experts are: logits are
// the same to the bit wherever that is.
constexpr int kLeastGroupRows = 256;
constexpr int kLeastGroupLength = 1024;

struct WideAttend {
  Attend of;  // any number of rows; but for eps, max_length and its scratch
  KvPage page = {};
  float q_eps = 0.0f;
  float k_eps = 0.0f;
  uint16_t* queries = nullptr;             // scratch: wide_query_halves() of these
  float* scales = nullptr;                 // scratch: [n_rows, n_heads]
  int64_t n_past = 0;                      // as in StepView
  int least_group_rows = kLeastGroupRows;  // only tests and benches give another
  bool by_groups = false;                  // how queries stand: wide_attend() says it
};
void wide_attend(const WideAttend& p, const Launch& how);

// Heads are made longer, to one of these.
constexpr int wide_dims(int head_dim) { return head_dim <= 64 ? 64 : head_dim <= 128 ? 128 : 256; }
constexpr int64_t wide_query_halves(int64_t n_rows, int n_heads, int head_dim) {
  return n_rows * n_heads * 2 * wide_dims(head_dim);
}

}  // namespace sluice::backend::cuda
