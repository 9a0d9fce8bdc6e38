// Projections of decode steps, 1 to 16 rows, and of short prompts: out = W norm(x) for several
// weights at once, x += W in, and the logits. Weights are stripes; results are bit-equal with
// quant/ for the same int8 input. Pointers are device memory; nothing here synchronises or
// allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/int8_rows.h"
#include "backend/cuda/launch.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

// [n_rows, n_cols], n_rows % 8 == 0, woven; bias [n_rows] or null.
struct StripeWeight {
  quant::Type type = quant::Type::q4_k;
  const uint8_t* data = nullptr;
  int n_rows = 0;
  const float* bias = nullptr;
  int out_column = 0;  // where its rows' results begin among a row's
};

constexpr int kMaxProjections = 4;

// x: [n_rows, n_cols] f32; out: [n_rows, out_stride]. norm: [n_cols].
struct ProjectIn {
  const float* x = nullptr;
  const float* norm = nullptr;
  float eps = 0.0f;
  int n_rows = 0;
  int n_cols = 0;
  StripeWeight weights[kMaxProjections];
  int n_weights = 0;
  float* out = nullptr;
  int out_stride = 0;
  Int8Rows a;  // scratch: [n_rows]; not needed where project_in_is_one_kernel()
};
// One launch for each type of weights (of one row: see project_row.h), and one more that quantises
// several rows.
void project_in(const ProjectIn& p, const Launch& how);
// Whether every block normalises and quantises the row, a single one, for itself.
bool project_in_is_one_kernel(const ProjectIn& p, const Launch& how);

// Rows that are int8 already, any number of them, in launches of up to 16. out[r] = W in[r] + bias,
// or += where it adds.
struct ProjectRows {
  Int8Rows in;
  int n_rows = 0;
  int n_cols = 0;
  StripeWeight weights[kMaxProjections];
  int n_weights = 0;
  float* out = nullptr;  // [n_rows, out_stride]
  int out_stride = 0;
  bool adds = false;
};
void project_rows(const ProjectRows& p, const Launch& how);

// A router whose scores are added up while x is made: to each expert's sum each block adds the
// products of its own columns of x, so no kernel of its own has to read all of x for the scores.
// (gate_up reads it for the norm, while the experts' weights are on their way.)
struct AddedScores {
  uint64_t* sums = nullptr;     // [n_experts + 1], of ScoreSum; zero before. Null: none are added
  const float* norm = nullptr;  // [d_model], as the next three as in Route
  int d_model = 0;
  quant::Type type = quant::Type::f32;
  const void* weight = nullptr;
  const float* shared_gate = nullptr;
  int n_experts = 0;
};

// x[r] += W in[r] + bias. Rows that no kernel quantised: quantize_rows.h.
struct ProjectAdd {
  Int8Rows in;
  int n_rows = 0;
  int n_cols = 0;
  StripeWeight weight;
  float* x = nullptr;       // [n_rows, weight.n_rows]
  AddedScores scores = {};  // of a single row, where can_add_scores()
};
void project_add(const ProjectAdd& p, const Launch& how);
bool can_add_scores(const ProjectAdd& p, const Launch& how);

// logits[i] = W norm(x[rows[i]]). rows: [n_rows], or null for all.
struct Logits {
  const float* x = nullptr;
  const int32_t* rows = nullptr;
  const float* norm = nullptr;
  float eps = 0.0f;
  int n_rows = 0;
  int n_cols = 0;
  StripeWeight weight;
  float* logits = nullptr;  // [n_rows, weight.n_rows]
  Int8Rows a;               // scratch: [n_rows]
};
void logits(const Logits& p, const Launch& how);

}  // namespace sluice::backend::cuda
