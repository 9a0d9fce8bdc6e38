// What the math hands to a backend: borrowed views of weights, rows and caches, all in memory of
// that backend. Whoever made a view owns what it points to and outlives the call.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/expert_slot.h"
#include "base/ids.h"
#include "quant/stripes.h"
#include "quant/type.h"

namespace sluice::backend {

// A matrix whose rows stand in another order than it has them: in groups, each of parts[0] rows,
// then of parts[1] and so on. The matrix is the first part of every group, then the second of every
// group.
struct RowGroups {
  int32_t n_groups = 0;  // 0: rows stand in their order
  std::array<int32_t, 4> parts = {};

  explicit operator bool() const { return n_groups > 0; }
};

// Rows first .. first + n_rows - 1 of a matrix, which stand one behind the other from row `at` on.
struct RowRun {
  int64_t first, at, n_rows;
};

// A weight [n_cols, n_rows, n_mats] in the file's order: n_mats matrices back to back, each of
// n_rows rows of n_cols values; y[n] = sum_k W[n][k] x[k]. Where rows are woven into stripes, only
// whole stripes have an address. Matrices of a weight that is part of a larger one stand further
// apart. Rows in groups are a file's alone: only the host reads them, run by run; copies that are
// made for a device, or woven, have them in order. Absent when data is null.
struct WeightView {
  quant::Type type = quant::Type::f32;
  const std::byte* data = nullptr;
  int64_t n_cols = 0;
  int64_t n_rows = 0;
  int64_t n_mats = 1;
  quant::Layout layout = quant::Layout::rows;
  int64_t rows_apart = 0;  // from one matrix to the next; 0: n_rows
  RowGroups groups = {};

  explicit operator bool() const { return data != nullptr; }
  uint64_t row_bytes() const { return quant::row_bytes(type, n_cols); }
  uint64_t matrix_bytes() const { return static_cast<uint64_t>(n_rows) * row_bytes(); }
  const std::byte* row(int64_t r) const { return data + static_cast<uint64_t>(r) * row_bytes(); }

  int64_t matrix_rows_apart() const { return rows_apart > 0 ? rows_apart : n_rows; }

  // One matrix, or some rows, of this weight.
  WeightView matrix(int64_t m) const {
    return {type, row(m * matrix_rows_apart()), n_cols, n_rows, 1, layout};
  }
  WeightView rows(int64_t first, int64_t count) const {
    return {type, row(first), n_cols, count, 1, layout};
  }

  // Of one matrix, or of each, in order: f(RowRun).
  template <typename F>
  void each_run(F&& f) const {
    if (!groups) return f(RowRun{0, 0, n_rows});
    const int64_t n_in_group = n_rows / groups.n_groups;
    int64_t first = 0, part_at = 0;
    for (const int32_t n : groups.parts) {
      for (int64_t g = 0; g < groups.n_groups; ++g, first += n) {
        f(RowRun{first, g * n_in_group + part_at, n});
      }
      part_at += n;
    }
  }

  // Some rows of each of its matrices.
  WeightView rows_of_each(int64_t first, int64_t count) const {
    return {type, data ? row(first) : nullptr, n_cols, count, n_mats, layout, matrix_rows_apart()};
  }
};

// y = W x + bias; bias [n_rows] or null.
struct Projection {
  WeightView weight;
  const float* bias = nullptr;
};

// y = weight * x / sqrt(mean(x^2) + eps); weight [n_cols].
struct NormView {
  const float* weight = nullptr;
  float eps = 0.0f;
};

// [n_rows, n_cols] f32, rows contiguous.
struct RowsView {
  float* data = nullptr;
  int64_t n_rows = 0;
  int64_t n_cols = 0;

  float* row(int64_t r) const { return data + r * n_cols; }
};

struct ConstRowsView {
  const float* data = nullptr;
  int64_t n_rows = 0;
  int64_t n_cols = 0;

  ConstRowsView(const float* d, int64_t rows, int64_t cols) : data(d), n_rows(rows), n_cols(cols) {}
  ConstRowsView(const RowsView& r)  // NOLINT(google-explicit-constructor): as T* to const T*
      : data(r.data), n_rows(r.n_rows), n_cols(r.n_cols) {}
  const float* row(int64_t r) const { return data + r * n_cols; }
};

// Which two dimensions of a head turn together: (2j, 2j+1), or (j, j + n_rot/2).
enum class RopePairing { adjacent, halves };

// Pair j of a row at position p turns by p * frequencies[j], and is scaled by magnitude. The host
// computes the angles for every backend (StepView), so that all turn by the same.
struct RopeView {
  RopePairing pairing = RopePairing::halves;
  std::span<const float> frequencies;  // [n_rot / 2]; dimensions from n_rot on stay as they are
  float magnitude = 1.0f;
};

// RMSNorm of q and k before rope: none, over each head [head_dim], or over all heads at once.
enum class HeadNorm { none, per_head, whole };

// Where the output is gated, a head's query is followed by its gate: [n_heads, 2, head_dim].
struct AttentionView {
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  bool is_gated = false;
  HeadNorm head_norm = HeadNorm::none;
  NormView q_norm;
  NormView k_norm;
  RopeView rope;

  int64_t q_cols() const { return int64_t{n_heads} * head_dim; }
  int64_t kv_cols() const { return int64_t{n_kv_heads} * head_dim; }
  // From one query to the next, and the columns of all of them with their gates.
  int64_t q_stride() const { return is_gated ? 2 * int64_t{head_dim} : head_dim; }
  int64_t gated_q_cols() const { return n_heads * q_stride(); }
  int64_t qkv_cols() const { return gated_q_cols() + 2 * kv_cols(); }
};

// Which key head a value head reads: neighbours share one (h / (Hv / Hk)), or those of equal
// remainder do (h % Hk).
enum class KeyHeads { by_neighbours, by_remainder };
// How the columns of b and a stand: all b, then all a; or for each key head the b of its value
// heads, then their a.
enum class GateColumns { apart, by_key_head };

// A gated DeltaNet (Ops::delta_net). conv: [conv_cols, n_taps], the oldest tap first.
struct DeltaNetView {
  int n_taps = 0;
  int n_key_heads = 0;
  int n_value_heads = 0;
  int head_dim = 0;
  KeyHeads key_heads = KeyHeads::by_neighbours;
  GateColumns gate_columns = GateColumns::apart;
  const float* conv = nullptr;
  const float* decay = nullptr;      // [n_value_heads], at most 0
  const float* time_bias = nullptr;  // [n_value_heads]
  NormView norm;  // of a value head's output; its eps also of the lengths of q, k

  explicit operator bool() const { return conv != nullptr; }
  int n_sharing() const { return n_value_heads / n_key_heads; }
  int key_head(int h) const {
    return key_heads == KeyHeads::by_neighbours ? h / n_sharing() : h % n_key_heads;
  }
  int64_t key_cols() const { return int64_t{n_key_heads} * head_dim; }
  int64_t value_cols() const { return int64_t{n_value_heads} * head_dim; }
  int64_t conv_cols() const { return 2 * key_cols() + value_cols(); }
  // Of project_in's result: q k v (conv_cols), z (value_cols), b and a; rows begin at multiples of
  // 16 bytes, as GPUs read them.
  int64_t in_cols() const { return (conv_cols() + value_cols() + 2 * n_value_heads + 3) / 4 * 4; }
  int64_t b_column(int h) const {
    const int r = n_sharing();
    const int64_t at = gate_columns == GateColumns::apart ? h : h / r * 2 * r + h % r;
    return conv_cols() + value_cols() + at;
  }
  int64_t a_column(int h) const {
    return b_column(h) + (gate_columns == GateColumns::apart ? n_value_heads : n_sharing());
  }
  // What a sequence keeps: the convolution's last inputs [n_taps - 1, conv_cols], the oldest first;
  // then for every value head S transposed, [value dims, key dims].
  int64_t conv_state() const { return (n_taps - 1) * conv_cols(); }
  int64_t state_values() const { return conv_state() + value_cols() * head_dim; }
  // What a token did to the state: the convolution's input [conv_cols], k [key_cols], what entered
  // S, sigmoid(b) (v - d S^T k) [value_cols], and d [n_value_heads].
  int64_t k_update() const { return conv_cols(); }
  int64_t entered_update() const { return k_update() + key_cols(); }
  int64_t decay_update() const { return entered_update() + value_cols(); }
  int64_t update_values() const { return decay_update() + n_value_heads; }
};

// One layer's share of the recurrent states. A state is never changed: a step reads a sequence's at
// from[sequence] and writes the one behind its rows to another, to[sequence]. So a state that is
// kept is a point to come back to. Tokens of narrow steps also leave their updates, each sequence's
// in turn, so that Ops::delta_replay can make the states behind them again.
struct StateLayerView {
  float* data = nullptr;          // of state 0
  int64_t stride = 0;             // values from one state to the next
  const int32_t* from = nullptr;  // [n_sequences]; -1: a sequence without tokens, all zeros
  const int32_t* to = nullptr;    // [n_sequences]
  int n_sequences = 0;

  const float* before(int32_t sequence) const {
    return from[sequence] < 0 ? nullptr : data + from[sequence] * stride;
  }
  float* after(int32_t sequence) const { return data + to[sequence] * stride; }
  const float* state(int32_t i) const { return i < 0 ? nullptr : data + i * stride; }

  float* updates = nullptr;   // [n_sequences, n_places] of this layer; null: nobody wants them
  int64_t update_stride = 0;  // values from one place to the next
  int32_t n_places = 0;
  int32_t max_logged_rows = 0;  // a step with more rows of a sequence leaves none of it

  bool logs(int64_t n_rows) const { return updates && n_rows <= max_logged_rows; }
  float* update(int32_t sequence, int32_t position) const {
    return updates + (int64_t{sequence} * n_places + position % n_places) * update_stride;
  }
};

// State `to` is `from` (-1: zeros) with the updates of the sequence's tokens begin .. end - 1.
struct StateReplay {
  int32_t sequence = 0;
  int32_t begin = 0, end = 0;
  int32_t from = -1, to = -1;
};

// The rows of one step, all that varies as data in the backend's memory, so that work which was
// recorded for one step serves later ones. The first *n_live rows are real: row r continues
// sequence sequences[r] at position positions[r], and rows of one sequence stand in order of
// position. The rest is padding: it is finite, keeps nothing and routes nothing. page_table
// [n_sequences, table_stride] names the page that holds each run of page_tokens positions.
struct StepView {
  int64_t n_rows = 0;
  const int32_t* n_live = nullptr;     // [1]
  const TokenId* tokens = nullptr;     // [n_rows]
  const int32_t* positions = nullptr;  // [n_rows]
  const int32_t* sequences = nullptr;  // [n_rows]
  const float* angles = nullptr;  // [n_rows, n_rot]: of RopeView's pairs, the cos, then the sin
  const int32_t* page_table = nullptr;
  int64_t table_stride = 0;
  int64_t n_past = 0;  // tokens that the longest sequence has with the rows; 0: not told beforehand
  const int32_t* n_logits = nullptr;    // [1]: rows whose logits are wanted
  const int32_t* logit_rows = nullptr;  // [n_rows]: which; the first *n_logits count
  const int32_t* n_best = nullptr;      // [1]: how many of a row's best pick() tells; 0: it is idle
  const int32_t* forced = nullptr;  // [n_layers, n_rows, n_used], as RoutingView has them; or null
};

// One layer's share of the KV cache: pages as in kv_page.h, keys and values apart, each in its own
// type.
struct KvLayerView {
  quant::Type k_type = quant::Type::f16;
  quant::Type v_type = quant::Type::f16;
  std::byte* k = nullptr;
  std::byte* v = nullptr;
  int page_tokens = 0;
};

// softmax(W h), the n_used largest, divided by their sum if renormalize. shared_gate [d_model]
// gives the shared expert's weight sigmoid(shared_gate . h); null where there is none.
struct RouterView {
  WeightView weight;
  int n_used = 0;
  bool renormalize = false;
  const float* shared_gate = nullptr;
};

// Best first, ties to the lower expert.
struct RoutingView {
  int n_used = 0;
  int32_t* experts = nullptr;       // [n_rows, n_used]
  float* weights = nullptr;         // [n_rows, n_used]
  float* shared_weights = nullptr;  // [n_rows]; written where the router has a shared gate
  // [n_rows, n_used]: who takes the place, and the weight, of the expert at that rank; -1: nobody.
  // Null: the router decides.
  const int32_t* forced = nullptr;
};

inline RoutingView rows_from(RoutingView v, int64_t first) {
  v.experts += first * v.n_used;
  v.weights += first * v.n_used;
  v.shared_weights += first;
  if (v.forced) v.forced += first * v.n_used;
  return v;
}

// The input of a layer's experts, in the formats their weights need: plain rows for F32, F16 and
// BF16, int8 blocks of 32 with scales (the numeric contract, part A) for all others. A format
// nobody needs is null.
struct ExpertInputView {
  int64_t n_rows = 0;
  int64_t n_cols = 0;
  float* f32 = nullptr;  // [n_rows, n_cols]
  int8_t* q = nullptr;   // [n_rows, n_cols]
  float* d = nullptr;    // [n_rows, n_cols / 32]
  float* y = nullptr;    // [n_rows, n_cols / 32]
};

inline ExpertInputView some_rows(ExpertInputView v, int64_t first, int64_t n_rows) {
  v.n_rows = n_rows;
  if (v.f32) v.f32 += first * v.n_cols;
  if (v.q) {
    v.q += first * v.n_cols;
    v.d += first * (v.n_cols / 32);
    v.y += first * (v.n_cols / 32);
  }
  return v;
}

// The matrices of one expert.
struct ExpertMatrices {
  WeightView gate, up, down;
};

// gate, up: [d_model, d_ff, n_experts]; down: [d_ff, d_model, n_experts]. The shared expert, where
// there is one, has matrices of its own width. Routed experts may stand each in one piece instead,
// a slot (ExpertLayout): all in a row, or by a table of addresses, which comes first where there
// are both. Then only the shapes of gate, up and down count.
struct ExpertsView {
  WeightView gate, up, down;
  WeightView shared_gate, shared_up, shared_down;
  const std::byte* const* table = nullptr;  // [n_experts]: a slot; null: the expert is not there
  const std::byte* slots = nullptr;         // n_experts slots, ExpertLayout::stride apart
  LayerId layer;                            // for whoever is asked for what the table lacks

  ExpertMatrices expert(int32_t e) const;
};

// How the matrices of one expert of a layer stand in a slot: one behind the other, as the planner
// prices them (base/expert_slot.h).
struct ExpertLayout {
  explicit ExpertLayout(const ExpertsView& experts);

  ExpertMatrices at(const std::byte* slot) const;
  // Where expert e stands, of slots in a row.
  const std::byte* slot(const std::byte* slots, int32_t e) const {
    return slots + static_cast<uint64_t>(e) * stride;
  }

  ExpertMatrices shape;  // without data
  uint64_t up_at = 0;
  uint64_t down_at = 0;
  uint64_t n_bytes = 0;
  uint64_t stride = 0;  // n_bytes and the gap up to the next slot
};

// Expert `expert` of a layer for row `row` of the step; what it gives is row `slot` of the output.
struct ExpertPair {
  int32_t expert;
  int32_t row;
  int32_t slot;
};

inline ExpertLayout::ExpertLayout(const ExpertsView& experts)
    : shape{experts.gate, experts.up, experts.down} {
  for (WeightView* w : {&shape.gate, &shape.up, &shape.down}) w->data = nullptr, w->n_mats = 1;
  up_at = slot_part_bytes(shape.gate.matrix_bytes());
  down_at = up_at + slot_part_bytes(shape.up.matrix_bytes());
  n_bytes = down_at + slot_part_bytes(shape.down.matrix_bytes());
  stride = slot_bytes(n_bytes);
}

inline ExpertMatrices ExpertLayout::at(const std::byte* slot) const {
  ExpertMatrices found = shape;
  found.gate.data = slot;
  found.up.data = slot + up_at;
  found.down.data = slot + down_at;
  return found;
}

inline ExpertMatrices ExpertsView::expert(int32_t e) const {
  if (!table && !slots) return {gate.matrix(e), up.matrix(e), down.matrix(e)};
  const ExpertLayout layout(*this);
  return layout.at(table ? table[e] : layout.slot(slots, e));
}

}  // namespace sluice::backend
