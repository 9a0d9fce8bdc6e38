// See experts.h. The arithmetic is the numeric contract's (quant/), so neither the grouping nor the
// split over threads can change a bit of the result.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/experts.h"

#include <algorithm>

#include "base/check.h"
#include "quant/combine.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

constexpr int64_t kMostGateUpRows = 256;  // at a time
constexpr int64_t kMostReservedRows = 16;

}  // namespace

void Experts::Rows::reserve(int64_t n_slots, int64_t n_cols, const WeightView& down) {
  inputs.reserve(n_batched, n_cols);
  if (quant::is_float(down.type)) {
    hidden = hidden_memory.get(n_slots * down.n_cols);
  } else {
    quantized.reserve(n_batched, down.n_cols);
  }
}

void Experts::reserve_groups(int64_t n_groups, int64_t n_rows) {
  if (std::ssize(groups_) < n_groups) groups_.resize(static_cast<size_t>(n_groups));
  const auto n = static_cast<size_t>(n_rows);
  const auto n_batches = static_cast<size_t>(RowBatch{0, n_rows}.n_groups());
  for (Group& group : groups_) {
    group.tokens.reserve(n);
    group.slots.reserve(n);
    for (InputRows* rows : {&group.inputs, &group.hidden}) {
      rows->f32.reserve(n);
      rows->q8.reserve(n_batches);
    }
  }
}

void Experts::reserve(const ExpertsView& experts, int64_t n_rows, int n_used) {
  n_rows = std::min(n_rows, kMostReservedRows);
  const int64_t n_pairs = n_rows * n_used;
  int64_t& n_reserved = n_reserved_[quant::is_float(experts.down.type) ? 1 : 0];
  if (n_pairs <= n_reserved) return;
  n_reserved = n_pairs;
  const int64_t n_cols = experts.gate.n_cols;
  const int64_t n_groups = std::min(experts.gate.n_mats, n_pairs) + 1;  // the shared one
  reserve_groups(n_groups, n_rows);
  group_of_expert_.reserve(static_cast<size_t>(experts.gate.n_mats));
  routed_.n_batched = n_pairs + n_groups * (kInputsTogether - 1);
  routed_.reserve(n_pairs, n_cols, experts.down);
  if (experts.shared_gate) {
    shared_.n_batched = RowBatch{0, n_rows}.end();
    shared_.reserve(n_rows, n_cols, experts.shared_down);
    shared_out_.get(n_rows * n_cols);
  }
  const int64_t widest = std::max({experts.gate.n_rows, experts.shared_gate.n_rows, n_cols});
  pieces_.reserve(static_cast<size_t>(n_groups * (widest / rows_per_piece(1) + 1)));
  for (Scratch<float>& scratch : threads_) scratch.get(2 * n_rows * kMostGateUpRows);
  input_sums_.reserve(n_rows, n_cols);
}

Experts::Group& Experts::add_group(const ExpertMatrices& expert, Rows& rows) {
  if (groups_.size() < static_cast<size_t>(++n_groups_)) groups_.emplace_back();
  Group& group = groups_[static_cast<size_t>(n_groups_ - 1)];
  group.gate = expert.gate;
  group.up = expert.up;
  group.down = expert.down;
  group.rows = &rows;
  group.tokens.clear();
  group.slots.clear();
  return group;
}

void Experts::make_groups(const ExpertsView& experts, std::span<const ExpertPair> pairs,
                          int64_t n_rows) {
  group_of_expert_.assign(static_cast<size_t>(experts.gate.n_mats), -1);
  n_groups_ = 0;
  for (const ExpertPair& pair : pairs) {
    CHECK(pair.expert >= 0 && pair.expert < experts.gate.n_mats);
    int32_t& index = group_of_expert_[static_cast<size_t>(pair.expert)];
    if (index < 0) {
      index = static_cast<int32_t>(n_groups_);
      add_group(experts.expert(pair.expert), routed_);
    }
    Group& group = groups_[static_cast<size_t>(index)];
    group.tokens.push_back(pair.row);
    group.slots.push_back(pair.slot);
  }
  if (!experts.shared_gate) return;
  // The shared expert is one more group, chosen by every row.
  Group& shared = add_group({experts.shared_gate, experts.shared_up, experts.shared_down}, shared_);
  for (int64_t r = 0; r < n_rows; ++r) shared.tokens.push_back(r);
  shared.slots = shared.tokens;
}

void Experts::place_groups(const ExpertsView& experts, const ExpertInputView& a, int64_t n_slots) {
  routed_.n_batched = shared_.n_batched = 0;
  for (int64_t g = 0; g < n_groups_; ++g) {
    Group& group = groups_[static_cast<size_t>(g)];
    group.batch = {group.rows->n_batched, group.n_pairs()};
    group.rows->n_batched = group.batch.end();
  }
  routed_.reserve(n_slots, a.n_cols, experts.down);
  if (!experts.shared_gate) return;
  shared_.reserve(a.n_rows, a.n_cols, experts.shared_down);
  shared_.out = shared_out_.get(a.n_rows * experts.shared_down.n_rows);
}

// The int8 rows that the group's pairs chose, side by side; a row that is alone stays where it is.
void Experts::set_q8(const ExpertInputView& a, Group& group) {
  const int64_t n_blocks = a.n_cols / 32;
  const auto row = [&](int64_t r) -> QuantizedInputs {
    return {a.q + r * a.n_cols,   a.d + r * n_blocks,   a.y + r * n_blocks,
            input_sums_.by_16(r), input_sums_.by_32(r), 1};
  };
  if (group.n_pairs() == 1) {
    group.inputs.q8.assign(1, row(group.tokens[0]));
    return;
  }
  for (int64_t g = 0; g < group.batch.n_groups(); ++g) {
    QuantizedInputs rows[kInputsTogether];
    size_t n = 0;
    for (auto i = static_cast<size_t>(g * kInputsTogether);
         i < group.tokens.size() && n < kInputsTogether; ++i) {
      rows[n++] = row(group.tokens[i]);
    }
    group.rows->inputs.gather(group.batch, g, {rows, n});
  }
  group.inputs.set_q8(group.rows->inputs, group.batch);
}

void Experts::set_inputs(const ExpertInputView& a) {
  if (a.q) {
    input_sums_.reserve(a.n_rows, a.n_cols);
    pool_.parallel_for(a.n_rows, 8, [&](int64_t begin, int64_t end, int) {
      for (int64_t r = begin; r < end; ++r) input_sums_.set(r, a.q + r * a.n_cols);
    });
  }
  const auto set_group = [&](Group& group) {
    if (a.q) set_q8(a, group);
    group.inputs.f32.clear();
    for (const int64_t r : group.tokens) {
      if (a.f32) group.inputs.f32.push_back(a.f32 + r * a.n_cols);
    }
    group.hidden.f32.clear();
    if (quant::is_float(group.down.type)) {
      for (const int64_t slot : group.slots) {
        group.hidden.f32.push_back(group.rows->hidden + slot * group.down.n_cols);
      }
    } else {
      group.hidden.set_q8(group.rows->quantized, group.batch);
    }
  };
  // A single row's are set in less time than other threads take to come.
  pool_.parallel_for(n_groups_, a.n_rows == 1 ? n_groups_ : 1,
                     [&](int64_t begin, int64_t end, int) {
                       for (int64_t g = begin; g < end; ++g) {
                         set_group(groups_[static_cast<size_t>(g)]);
                       }
                     });
}

// Rows of gate, and then of up, at a time. Each change from one to the other breaks the stream that
// the CPU fetches ahead, so with few inputs pieces are as large as leaves every thread four: 22
// GB/s become 27 on a Zen 4 core.
int64_t Experts::gate_up_rows(const Group& group) const {
  constexpr int64_t kPerThread = 4;
  const int64_t least = rows_per_piece(group.n_pairs());
  if (least > rows_per_piece(1)) return least;
  const int64_t share = n_groups_ * group.gate.n_rows / (kPerThread * pool_.n_threads());
  return std::clamp(share / 32 * 32, least, kMostGateUpRows);
}

void Experts::add_pieces(int64_t group, int64_t n_rows, int64_t step) {
  for (int64_t i = 0; i < n_rows; i += step) {
    pieces_.push_back({group, i, std::min(step, n_rows - i)});
  }
}

void Experts::run_pieces(Work work) {
  pool_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t p = begin; p < end; ++p) {
      const auto& [group, first, n] = pieces_[static_cast<size_t>(p)];
      (this->*work)(groups_[static_cast<size_t>(group)], first, n,
                    threads_[static_cast<size_t>(thread)]);
    }
  });
}

// Rows [first, first + n) of gate and up: a whole number of the hidden rows' blocks of 32.
void Experts::gate_up(Group& group, int64_t first, int64_t n, Scratch<float>& scratch) {
  const int64_t n_pairs = group.n_pairs();
  float* const gate = scratch.get(2 * n_pairs * n);
  float* const up = gate + n_pairs * n;
  multiply(kernels_, group.gate, first, n, group.inputs, gate);
  multiply(kernels_, group.up, first, n, group.inputs, up);
  const auto all = static_cast<size_t>(n_pairs * n);
  quant::swiglu({gate, all}, {up, all}, gate);
  for (int64_t i = 0; i < n_pairs; ++i) {
    if (quant::is_float(group.down.type)) {
      const int64_t slot = group.slots[static_cast<size_t>(i)];
      std::copy_n(gate + i * n, n, group.rows->hidden + slot * group.down.n_cols + first);
    } else {
      group.rows->quantized.set(group.batch, i, first, n, gate + i * n);
    }
  }
}

void Experts::down(Group& group, int64_t first, int64_t n, Scratch<float>& scratch) {
  const int64_t n_pairs = group.n_pairs();
  float* const dots = scratch.get(n_pairs * n);
  multiply(kernels_, group.down, first, n, group.hidden, dots);
  for (int64_t i = 0; i < n_pairs; ++i) {
    const int64_t slot = group.slots[static_cast<size_t>(i)];
    std::copy_n(dots + i * n, n, group.rows->out + slot * group.down.n_rows + first);
  }
}

void Experts::compute(const ExpertsView& experts, std::span<const ExpertPair> pairs,
                      const ExpertInputView& a, float* out) {
  int64_t n_slots = 0;
  for (const ExpertPair& pair : pairs) n_slots = std::max<int64_t>(n_slots, pair.slot + 1);
  make_groups(experts, pairs, a.n_rows);
  if (n_groups_ == 0) return;
  place_groups(experts, a, n_slots);
  routed_.out = out;
  set_inputs(a);
  pieces_.clear();
  for (int64_t g = 0; g < n_groups_; ++g) {
    const Group& group = groups_[static_cast<size_t>(g)];
    add_pieces(g, group.gate.n_rows, gate_up_rows(group));
  }
  run_pieces(&Experts::gate_up);
  pieces_.clear();
  for (int64_t g = 0; g < n_groups_; ++g) {
    const Group& group = groups_[static_cast<size_t>(g)];
    add_pieces(g, group.down.n_rows, rows_per_piece(group.n_pairs()));
  }
  run_pieces(&Experts::down);
}

void Experts::combine(const RoutingView& routing, const float* rows, bool has_shared, RowsView x) {
  const auto n_used = static_cast<size_t>(routing.n_used);
  pool_.parallel_for(x.n_rows, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      quant::combine(
          {routing.weights + r * routing.n_used, n_used}, rows + r * routing.n_used * x.n_cols,
          x.n_cols, has_shared ? shared_.out + r * x.n_cols : nullptr,
          has_shared ? routing.shared_weights[r] : 0.0f, {x.row(r), static_cast<size_t>(x.n_cols)});
    }
  });
}

void Experts::run(const ExpertsView& experts, const ExpertInputView& a, const RoutingView& routing,
                  RowsView x) {
  const auto n_slots = static_cast<int32_t>(a.n_rows * routing.n_used);
  reserve(experts, a.n_rows, routing.n_used);
  pairs_.clear();
  for (int32_t slot = 0; slot < n_slots; ++slot) {
    pairs_.push_back({routing.experts[slot], slot / routing.n_used, slot});
  }
  float* const rows = routed_out_.get(int64_t{n_slots} * x.n_cols);
  compute(experts, pairs_, a, rows);
  combine(routing, rows, static_cast<bool>(experts.shared_gate), x);
}

}  // namespace sluice::backend::cpu
