// A layer's experts one matrix at a time, where their types are not the same (any_experts.h): of
// the list that find_experts or experts() has made.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cuda/any_experts.h"
#include "backend/cuda/cuda_ops_parts.h"
#include "backend/cuda/find_missing.h"

namespace sluice::backend::cuda {
namespace {

using Use = CudaScratch::Use;

// What all matrices of a layer have in common.
ExpertDots dots_of(int n_rows, int n_used, const ExpertList& list) {
  ExpertDots p;
  p.n_routed = n_rows * n_used;
  p.most_groups = p.n_routed + 1;
  p.list = list;
  return p;
}

void multiply(ExpertDots p, const WeightView& w, ExpertMatrix matrix, bool is_shared,
              const Launch& how) {
  if (w.n_rows == 0) return;  // there is none; where it stands, the list says
  p.type = w.type;
  p.matrix = matrix;
  p.is_shared = is_shared;
  p.n_out = static_cast<int>(w.n_rows);
  p.n_cols = static_cast<int>(w.n_cols);
  expert_dots(p, how);
}

}  // namespace

// Leaves the hidden rows as f32 in the gate's place, and as int8.
void CudaOps::compute_any(const ExpertsView& e, const ExpertInputView& a) {
  const int n_slots = found_.n_rows * (found_.shape.n_used + 1);
  const int64_t d_ff = std::max(found_.shape.d_ff, found_.shape.shared_d_ff);
  ExpertDots p = dots_of(found_.n_rows, found_.shape.n_used, expert_list());
  p.in = input_rows(a);
  p.in_f32 = a.f32;
  p.in_stride = a.n_cols;
  p.out_stride = d_ff;
  auto* const gate = p.out = scratch_.get<float>(Use::gate, n_slots * d_ff);
  multiply(p, e.gate, ExpertMatrix::gate, false, how_);
  multiply(p, e.shared_gate, ExpertMatrix::gate, true, how_);
  auto* const up = p.out = scratch_.get<float>(Use::up, n_slots * d_ff);
  multiply(p, e.up, ExpertMatrix::up, false, how_);
  multiply(p, e.shared_up, ExpertMatrix::up, true, how_);
  const bool has_int8 =
      !quant::is_float(e.down.type) || (e.shared_down && !quant::is_float(e.shared_down.type));
  found_.hidden = has_int8 ? int8_rows(Use::hidden, n_slots, d_ff) : Int8Rows{};
  expert_hidden({n_slots, found_.n_rows * found_.shape.n_used, found_.shape.d_ff,
                 found_.shape.shared_d_ff, gate, up, d_ff, found_.hidden},
                how_);
}

void CudaOps::add_any(const ExpertsView& e, const RoutingView& routing, RowsView x) {
  const int64_t n_slots = int64_t{found_.n_rows} * (found_.shape.n_used + 1);
  const int64_t d_ff = std::max(found_.shape.d_ff, found_.shape.shared_d_ff);
  ExpertDots p = dots_of(found_.n_rows, found_.shape.n_used, expert_list());
  p.by_slot = true;
  p.in = found_.hidden;
  p.in_f32 = scratch_.get<float>(Use::gate, n_slots * d_ff);
  p.in_stride = d_ff;
  p.out = scratch_.get<float>(Use::outside, n_slots * x.n_cols);
  p.out_stride = x.n_cols;
  multiply(p, e.down, ExpertMatrix::down, false, how_);
  multiply(p, e.shared_down, ExpertMatrix::down, true, how_);
  if (found_.host.step)
    take_answers({p.list, found_.host, static_cast<int>(x.n_cols), p.out}, how_);
  expert_sum({found_.n_rows, found_.shape.n_used, static_cast<int>(x.n_cols),
              static_cast<bool>(e.shared_gate), routing.weights, routing.shared_weights, p.out,
              found_.n_live, x.data},
             how_);
}

}  // namespace sluice::backend::cuda
