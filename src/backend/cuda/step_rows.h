// Small kernels between the large ones: what of a step's rows is real, which experts are forced on
// it, and its embeddings. Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

// As RoutedExpert.
struct RoutedPair {
  int32_t expert;
  float weight;
};

// out[i] = rows[first + i] where there is one that is wanted, or else 0.
struct WantedRows {
  const int32_t* rows = nullptr;
  const int32_t* n_wanted = nullptr;
  int first = 0;
  int n = 0;
  int32_t* out = nullptr;  // [n]
};
void wanted_rows(const WantedRows& p, const Launch& how);

// experts[i] = forced[i] where that is not negative.
struct ForceExperts {
  const int32_t* forced = nullptr;  // [n]
  int32_t* experts = nullptr;       // [n]
  int n = 0;
};
void force_experts(const ForceExperts& p, const Launch& how);

// The list of a step whose experts are chosen; a row may have one twice. Rows from *n_live on
// (null: there are none) are in no group.
struct ListExperts {
  const int32_t* experts = nullptr;  // [n_rows, n_used]
  int n_rows = 0;
  int n_used = 0;
  const uint8_t* const* table = nullptr;  // [n_experts]: slots
  int64_t up_at = 0;
  int64_t down_at = 0;
  const uint8_t* shared[3] = {};  // gate, up, down of the shared expert, or null
  ExpertList list;
  const int32_t* n_live = nullptr;
};
void list_experts(const ListExperts& p, const Launch& how);

// x[r] = table[tokens[r]], of the first *n_live rows.
struct Embed {
  quant::Type type = quant::Type::f32;  // f32, f16 or bf16
  const void* table = nullptr;          // [n_tokens, n_cols]
  const int32_t* tokens = nullptr;      // [n_rows]
  const int32_t* n_live = nullptr;
  int n_rows = 0;
  int n_cols = 0;
  float* x = nullptr;  // [n_rows, n_cols]
};
void embed(const Embed& p, const Launch& how);

}  // namespace sluice::backend::cuda
