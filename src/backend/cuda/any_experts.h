// Experts of any types, also such as differ within an expert or between the routed ones and the
// shared one: one matrix at a time, to f32 rows. Bit-equal with quant/, simple and not fast; where
// gate and up, and shared and routed experts, have the same quantised types, experts.h is for them.
// Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

enum class ExpertMatrix { gate, up, down };

// out[slot] = M in, of all pairs of the list: M a matrix of each routed expert, or of the shared
// one. Quantised M: stripes, with int8 inputs; float M: rows, with f32 inputs.
struct ExpertDots {
  quant::Type type = quant::Type::f32;
  ExpertMatrix matrix = ExpertMatrix::gate;
  bool is_shared = false;
  int n_out = 0;
  int n_cols = 0;
  int n_routed = 0;  // slots of routed experts; those of the shared one are behind them
  int most_groups = 0;
  ExpertList list;
  bool by_slot = false;  // the input of a pair is that of its slot, else of its row
  Int8Rows in;
  const float* in_f32 = nullptr;  // rows of in_stride
  int64_t in_stride = 0;
  float* out = nullptr;  // [slots, out_stride]
  int64_t out_stride = 0;
};
void expert_dots(const ExpertDots& p, const Launch& how);

// h[slot] = SwiGLU(gate[slot], up[slot]), as int8 and in place of gate. Slots from n_routed on are
// shared_d_ff wide.
struct ExpertHidden {
  int n_slots = 0;
  int n_routed = 0;
  int d_ff = 0;
  int shared_d_ff = 0;
  float* gate = nullptr;  // [n_slots, stride]
  const float* up = nullptr;
  int64_t stride = 0;
  Int8Rows h;  // [n_slots]
};
void expert_hidden(const ExpertHidden& p, const Launch& how);

// x[r] += sum_k weights[r][k] outs[slot], in order of rank, then the shared expert's; of the first
// *n_live rows (null: all).
struct ExpertSum {
  int n_rows = 0;
  int n_used = 0;
  int d_model = 0;
  bool has_shared = false;
  const float* weights = nullptr;         // [n_rows, n_used]
  const float* shared_weights = nullptr;  // [n_rows]; null: 1
  const float* outs = nullptr;            // [slots, d_model]
  const int32_t* n_live = nullptr;
  float* x = nullptr;  // [n_rows, d_model]
};
void expert_sum(const ExpertSum& p, const Launch& how);

}  // namespace sluice::backend::cuda
