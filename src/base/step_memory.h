// How much memory a step takes besides weights, keys and values, part by part: what host and device
// write to each other, and what a device's operations keep from one to the next. Asked by whoever
// allocates and by the planner, so that the two cannot disagree; the allocators check their own
// layouts against it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/units.h"

namespace sluice {

// The widest step that is one submission; recordings are of 1, 2, 4, 8 and 16 rows.
constexpr int kNarrowRows = 16;
// A wider step's rows, where the CPU computes its experts, go through the mailbox so many at a
// time: its rows are pinned memory. Fewer would read the experts' weights more often than they
// compute.
constexpr int kMailboxRows = 128;
// Copies of experts that are not registered go through so many pinned places.
constexpr int kRingSlots = 4;

// Every array stands on a line of its own (base/carver.h).
constexpr uint64_t lines(int64_t n, uint64_t elem_bytes) {
  return round_up(static_cast<uint64_t>(n) * elem_bytes, 64);
}

// Of one request, words included.
struct MailboxSize {
  int64_t max_rows = 0;
  int64_t max_pairs = 0;
  int64_t n_cols = 0;
};
constexpr uint64_t mailbox_bytes(const MailboxSize& s) {
  const int64_t n_values = s.max_rows * s.n_cols;
  return lines(3, 64) + lines(1, 24) + lines(s.max_pairs, 12) + lines(n_values, 4) +
         lines(n_values, 1) + 2 * lines(n_values / 32, 4) + lines(s.max_pairs * s.n_cols, 4);
}

// Experts that come or go at the head of one step; more are written before it.
constexpr int kTableChanges = 64;

// The image in pinned memory, and as much again for its twin in the device's.
struct StepBlockSize {
  int64_t max_rows = 0;
  int64_t d_model = 0;
  int64_t n_rot = 0;
  int64_t table_size = 0;  // of the page table: all sequences
  int64_t n_states = 0;    // sequences of a model with recurrent layers
  int64_t n_routes = 0;    // experts of a row, of all layers: narrow steps can be told them
};
constexpr uint64_t step_block_bytes(const StepBlockSize& s) {
  return lines(1, 24) + lines(kTableChanges, 32) + lines(s.table_size, 4) +
         2 * lines(s.n_states, 4) + 4 * lines(s.max_rows, 4) + lines(s.max_rows * s.n_rot, 4) +
         lines(s.max_rows * s.d_model, 4) +
         lines((s.max_rows < kNarrowRows ? s.max_rows : kNarrowRows) * s.n_routes, 4);
}

// Experts that a decode step reads over the link leave a copy in the device's memory, so many at
// most; counted there, before and behind each layer.
constexpr int kLandingPlaces = 64;
constexpr uint64_t landing_bytes(int64_t n_layers) { return lines(n_layers + 1, 4); }

// What a step routed, and where its experts were.
constexpr uint64_t routing_log_bytes(int64_t n_layers, int64_t max_rows, int64_t n_used) {
  return static_cast<uint64_t>(n_layers * (64 + max_rows * n_used * 8));
}

// A row's best candidates, on their way back.
constexpr uint64_t kPickedRowBytes = 8 + 256 * 8;

// What the device tells of routed layers, what it foresees of later ones, and a word for each
// staging slot.
constexpr uint64_t foresight_bytes(int64_t n_layers, int64_t max_rows, int64_t n_used,
                                   int64_t n_slots) {
  return static_cast<uint64_t>(n_layers * (24 + max_rows * (2 * n_used + 1) * 4) +
                               (n_slots + 1) * 8);
}

// What a prompt's layers tell of the experts they use, and for each half of the buffer through
// which these come a table and two words.
constexpr uint64_t wave_bytes(int64_t n_layers, int64_t n_experts) {
  return 2 * lines(1, 8) + lines(n_layers, 8) + lines(n_layers * n_experts, 4) +
         2 * (lines(n_experts, 8) + 2 * lines(1, 8));
}

// A wide step's pairs of row and expert, sorted by expert: where each expert's begin, and they.
constexpr uint64_t pair_list_bytes(int64_t n_rows, int64_t n_used, int64_t n_experts) {
  return lines(n_rows * n_used, 4) + lines(n_experts + 1, 4);
}

// A long row is cut into this many splits at most; each leaves the sums of a head, and behind them
// peak and sum of the exponentials, on a boundary of four.
constexpr int kAttentionSplits = 32;
constexpr int64_t attention_partials(int64_t n_rows, int64_t n_heads, int64_t head_dim) {
  return n_rows * n_heads * kAttentionSplits * (head_dim + 4);  // floats
}

// What the operations of a device keep from one to the next.
struct OpsSize {
  int64_t max_rows = 0;
  int64_t d_model = 0;
  int64_t d_ff = 0;  // the widest expert's, the shared one included
  int64_t n_heads = 0;
  int64_t head_dim = 0;
  int64_t n_experts = 0;
  int64_t n_used = 0;
  int64_t n_vocab = 0;
  int64_t mixed_cols = 0;  // of hybrids: what the widest layer's recurrence hands on,
  int64_t row_cols = 0;    // and what its projections put out

  constexpr int64_t narrow_rows() const { return max_rows < kNarrowRows ? max_rows : kNarrowRows; }
};
// The experts' output, a row for each pair.
constexpr uint64_t expert_row_bytes(const OpsSize& s) {
  return lines(s.max_rows * s.n_used * s.d_model, 4);
}

// The arrays of a GPU's operations, each as large as the widest step needs it, in bytes: one place
// for each, whatever comes. What the experts put out has a row for the shared one besides; what a
// wide step's recurrence makes of its input, no wider than that, stands in the same place.
struct OpsArrays {
  uint64_t input = 0, attended = 0, expert_input = 0, hidden = 0;  // int8 rows
  uint64_t outside = 0;                                            // f32 rows, as all below
  uint64_t partials = 0, queries = 0, scores = 0, normed = 0, projected = 0;
  uint64_t gate = 0, up = 0;
  uint64_t pairs = 0, tiles = 0;
  uint64_t once = 0;  // counters, an empty table, lists of a narrow step

  constexpr uint64_t sum() const {
    return input + attended + expert_input + hidden + outside + partials + queries + scores +
           normed + projected + gate + up + pairs + tiles + once;
  }
};
constexpr OpsArrays ops_arrays(const OpsSize& s) {
  constexpr int64_t kMostScores = 1025;  // of a narrow step's row, whatever the model has
  const auto array = [](int64_t n, int64_t elem_bytes) {
    return round_up(static_cast<uint64_t>(n * elem_bytes), 256);
  };
  const auto int8_rows = [&](int64_t n_rows, int64_t n_cols) {
    return array(n_rows * ((n_cols + 255) / 256), 320);
  };
  const auto more = [](int64_t a, int64_t b) { return a > b ? a : b; };
  const int64_t n_rows = s.max_rows, n_narrow = s.narrow_rows();
  const int64_t n_slots = n_rows * (s.n_used + 1), n_narrow_slots = n_narrow * (s.n_used + 1);
  const int64_t q_cols = s.n_heads * s.head_dim;
  const int64_t wide_head = (s.head_dim + 127) / 128 * 128 + 1;
  const int64_t wide_row = (s.d_model + 2047) / 2048 * 2048 + 1;  // of a router of many rows
  // An output matrix whose rows are no whole stripes is computed with some more.
  const int64_t odd_vocab = s.n_vocab % 8 == 0 ? 0 : s.n_vocab + 8;
  OpsArrays out;
  const int64_t mixed_cols = more(q_cols, s.mixed_cols);
  out.input = int8_rows(n_rows, more(s.d_model, mixed_cols));
  out.attended = int8_rows(n_rows, mixed_cols);
  out.expert_input = int8_rows(n_rows, s.d_model);
  out.hidden = int8_rows(n_slots, s.d_ff);
  out.outside = array(more(n_slots * s.d_model, n_rows * s.row_cols), 4);
  out.partials = array(attention_partials(n_narrow, s.n_heads, s.head_dim), 4);
  out.queries = array(n_rows * s.n_heads * wide_head, 4);
  out.scores = array(more(n_rows * (s.n_experts + 1), kNarrowRows * kMostScores), 4);
  out.normed = array(n_rows * wide_row, 4);
  out.projected = array(kNarrowRows * more(more(q_cols, s.row_cols), odd_vocab), 4);
  out.gate = out.up = array(n_narrow_slots * s.d_ff, 4);
  out.pairs = array(n_rows * s.n_used + s.n_experts + 1, 4);
  out.tiles = array(n_rows * s.n_used / 16 + s.n_experts + 2, 16);
  // And what a layer foresees of a later one: its input, scores and list.
  out.once = 80 * kKiB + int8_rows(n_narrow, s.d_model) + 96 * kKiB;
  return out;
}
constexpr uint64_t ops_scratch_bytes(const OpsSize& s) { return ops_arrays(s).sum(); }

}  // namespace sluice
