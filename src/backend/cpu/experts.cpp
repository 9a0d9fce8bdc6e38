// See experts.h. The arithmetic is the numeric contract's (quant/), so neither the grouping nor the
// split over threads can change a bit of the result.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/experts.h"

#include <algorithm>

#include "base/check.h"
#include "quant/combine.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {

void Experts::set_inputs(Group& group, const ExpertInputView& a) {
  const size_t n = group.rows.size();
  group.inputs.f32.resize(n);
  group.inputs.q8.resize(n);
  const int64_t n_blocks = a.n_cols / 32;
  for (size_t i = 0; i < n; ++i) {
    const int64_t r = group.rows[i];
    if (a.f32) group.inputs.f32[i] = a.f32 + r * a.n_cols;
    if (a.q) group.inputs.q8[i] = {a.q + r * a.n_cols, a.d + r * n_blocks, a.y + r * n_blocks};
  }
  group.hidden.f32.resize(n);
  group.hidden.q8.resize(n);
  for (size_t i = 0; i < n; ++i) {
    group.hidden.f32[i] = group.h + group.slots[i] * group.gate.n_rows;
  }
}

void Experts::make_groups(const ExpertsView& experts, const ExpertInputView& a,
                          const RoutingView& routing) {
  const int64_t n_slots = a.n_rows * routing.n_used;
  const int64_t d_ff = experts.gate.n_rows;
  float* h = h_.get(n_slots * d_ff);
  float* out = out_.get(n_slots * experts.down.n_rows);
  group_of_expert_.assign(static_cast<size_t>(experts.gate.n_mats), -1);
  n_groups_ = 0;
  for (int64_t slot = 0; slot < n_slots; ++slot) {
    const int32_t expert = routing.experts[slot];
    CHECK(expert >= 0 && expert < experts.gate.n_mats);
    int32_t& index = group_of_expert_[static_cast<size_t>(expert)];
    if (index < 0) {
      index = static_cast<int32_t>(n_groups_++);
      if (groups_.size() < static_cast<size_t>(n_groups_)) groups_.emplace_back();
      Group& fresh = groups_[static_cast<size_t>(index)];
      fresh.gate = experts.gate.matrix(expert);
      fresh.up = experts.up.matrix(expert);
      fresh.down = experts.down.matrix(expert);
      fresh.quantized = &quantized_h_;
      fresh.h = h;
      fresh.out = out;
      fresh.rows.clear();
      fresh.slots.clear();
    }
    Group& group = groups_[static_cast<size_t>(index)];
    group.rows.push_back(slot / routing.n_used);
    group.slots.push_back(slot);
  }
  if (!quant::is_float(experts.down.type)) quantized_h_.reserve(n_slots, d_ff);
}

// The shared expert is one more group, chosen by every row.
void Experts::add_shared_group(const ExpertsView& experts, const ExpertInputView& a) {
  if (groups_.size() < static_cast<size_t>(++n_groups_)) groups_.emplace_back();
  Group& group = groups_[static_cast<size_t>(n_groups_ - 1)];
  group.gate = experts.shared_gate;
  group.up = experts.shared_up;
  group.down = experts.shared_down;
  group.quantized = &quantized_shared_h_;
  group.h = shared_h_.get(a.n_rows * group.gate.n_rows);
  group.out = shared_out_.get(a.n_rows * group.down.n_rows);
  group.rows.resize(static_cast<size_t>(a.n_rows));
  for (int64_t r = 0; r < a.n_rows; ++r) group.rows[static_cast<size_t>(r)] = r;
  group.slots = group.rows;
  if (!quant::is_float(group.down.type)) {
    quantized_shared_h_.reserve(a.n_rows, group.gate.n_rows);
  }
}

// Calls body(group, row, thread) for every row of every group's matrix.
template <typename Body>
void Experts::for_pieces(int64_t (*n_rows)(const Group&), Body&& body) {
  constexpr int64_t kRows = 32;
  pieces_.clear();
  for (int64_t g = 0; g < n_groups_; ++g) {
    const int64_t n = n_rows(groups_[static_cast<size_t>(g)]);
    for (int64_t i = 0; i < n; i += kRows) pieces_.push_back({g, i, std::min(i + kRows, n)});
  }
  pool_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t p = begin; p < end; ++p) {
      const Piece& piece = pieces_[static_cast<size_t>(p)];
      Group& group = groups_[static_cast<size_t>(piece.group)];
      for (int64_t n = piece.begin; n < piece.end; ++n) {
        body(group, n, threads_[static_cast<size_t>(thread)]);
      }
    }
  });
}

void Experts::gate_up() {
  for_pieces([](const Group& g) { return g.gate.n_rows; },
             [](Group& group, int64_t n, Thread& thread) {
               const size_t n_pairs = group.rows.size();
               thread.gate.resize(n_pairs);
               thread.up.resize(n_pairs);
               const auto count = static_cast<int64_t>(n_pairs);
               row_dots(group.gate, n, group.inputs, count, thread.unpacked, thread.gate.data());
               row_dots(group.up, n, group.inputs, count, thread.unpacked, thread.up.data());
               quant::swiglu(thread.gate, thread.up, thread.gate.data());
               for (size_t i = 0; i < n_pairs; ++i) {
                 group.h[group.slots[i] * group.gate.n_rows + n] = thread.gate[i];
               }
             });
}

void Experts::quantize_hidden() {
  pool_.parallel_for(n_groups_, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t g = begin; g < end; ++g) {
      Group& group = groups_[static_cast<size_t>(g)];
      if (quant::is_float(group.down.type)) continue;
      for (size_t i = 0; i < group.slots.size(); ++i) {
        group.quantized->set(group.slots[i], group.hidden.f32[i]);
        group.hidden.q8[i] = group.quantized->row(group.slots[i]);
      }
    }
  });
}

void Experts::down() {
  for_pieces([](const Group& g) { return g.down.n_rows; },
             [](Group& group, int64_t n, Thread& thread) {
               const size_t n_pairs = group.rows.size();
               thread.gate.resize(n_pairs);
               row_dots(group.down, n, group.hidden, static_cast<int64_t>(n_pairs), thread.unpacked,
                        thread.gate.data());
               for (size_t i = 0; i < n_pairs; ++i) {
                 group.out[group.slots[i] * group.down.n_rows + n] = thread.gate[i];
               }
             });
}

void Experts::run(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
                  RowsView x) {
  make_groups(experts, a, routing);
  if (experts.shared_gate) add_shared_group(experts, a);
  for (int64_t g = 0; g < n_groups_; ++g) set_inputs(groups_[static_cast<size_t>(g)], a);
  gate_up();
  quantize_hidden();
  down();

  const float* out = out_.get(0);
  const float* shared = experts.shared_gate ? shared_out_.get(0) : nullptr;
  const int64_t d_model = x.n_cols;
  const auto n_used = static_cast<size_t>(routing.n_used);
  pool_.parallel_for(x.n_rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      quant::combine(
          {routing.weights + r * routing.n_used, n_used}, out + r * routing.n_used * d_model,
          d_model, shared ? shared + r * d_model : nullptr,
          shared ? routing.shared_weights[r] : 0.0f, {x.row(r), static_cast<size_t>(d_model)});
    }
  });
}

}  // namespace sluice::backend::cpu
