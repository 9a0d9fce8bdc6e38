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
};
constexpr uint64_t step_block_bytes(const StepBlockSize& s) {
  return lines(1, 24) + lines(kTableChanges, 16) + lines(s.table_size, 4) +
         4 * lines(s.max_rows, 4) + lines(s.max_rows * s.n_rot, 4) +
         lines(s.max_rows * s.d_model, 4);
}

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

  constexpr int64_t narrow_rows() const { return max_rows < kNarrowRows ? max_rows : kNarrowRows; }
};
// The experts' output, a row for each pair.
constexpr uint64_t expert_row_bytes(const OpsSize& s) {
  return lines(s.max_rows * s.n_used * s.d_model, 4);
}
// Of narrow steps alone. A GPU takes room for every width that it records: together no more than
// twice the widest one's.
constexpr uint64_t partial_bytes(const OpsSize& s) {
  const int64_t n = attention_partials(s.narrow_rows(), s.n_heads, s.head_dim);
  return 2 * round_up(static_cast<uint64_t>(n) * 4, 256);
}
constexpr uint64_t narrow_ops_bytes(const OpsSize& s) {  // without these
  const auto int8_rows = [](int64_t n_rows, int64_t n_cols) {
    return round_up(static_cast<uint64_t>(n_rows * ((n_cols + 255) / 256)) * 320, 256);
  };
  const int64_t n_rows = s.narrow_rows();
  const int64_t q_cols = s.n_heads * s.head_dim;
  const uint64_t by_width =
      int8_rows(n_rows, s.d_model > q_cols ? s.d_model : q_cols) + int8_rows(n_rows, q_cols) +
      int8_rows(n_rows, s.d_model) + int8_rows(n_rows * (s.n_used + 1), s.d_ff) +
      round_up(static_cast<uint64_t>(n_rows * (s.n_used + 1) * s.d_model) * 4, 256);
  // Counters and an empty table, positions and wanted rows, scores, groups of pairs.
  constexpr uint64_t kOnce = 24 * kKiB + 1024 + 65 * kKiB + 25 * kKiB;
  return 2 * by_width + kOnce;
}
constexpr uint64_t ops_scratch_bytes(const OpsSize& s) {
  return expert_row_bytes(s) + partial_bytes(s) + narrow_ops_bytes(s);
}

}  // namespace sluice
