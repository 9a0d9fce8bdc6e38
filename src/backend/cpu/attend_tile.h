// The arithmetic of attention, and its unit of work: a tile is some rows of one sequence and the
// heads that share one kv head, so each key and value is widened once for rows * heads queries.
//
// A query at position p sees positions 0..p of its sequence, in spans of 1024 and within them in
// blocks of 64, both counted from position 0. A span starts with m = -inf, l = 0, o = 0; a block:
//   s_t = (q . k_t) * scale     scale = 1 / sqrt(head_dim); the dot as quant::dot_f32
//   m'  = max(m, max_t s_t)
//   p_t = EXP(s_t - m')         EXP = quant::contract_exp
//   l   = fma(l, EXP(m - m'), sum_t p_t)    the sum in eight chains, t in chain t mod 8, which are
//                                           added like those of the dot
//   o   = o * EXP(m - m'), then o = fma(p_t, v_t, o) for t ascending
//   m   = m'
// Spans are merged in order, the left one being all before:
//   m = max(m0, m1);  l = fma(l0, EXP(m0 - m), l1 * EXP(m1 - m));  o likewise
// and the result is o / l. All of it depends on the query and what it sees alone: not on the tile,
// the step, the pages, the thread, or the width of vectors.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/attend_block.h"
#include "backend/cpu/scratch.h"
#include "backend/views.h"

namespace sluice::backend::cpu {

constexpr int kSpanPositions = 1024;

struct AttendCall {
  const RowsView& qkv;  // q normalised and turned, and rotated where keys are (kv_rotation.h)
  const AttentionView& attention;
  const StepView& step;
  const KvLayerView& kv;
  const RowsView& out;

  int group() const { return attention.n_heads / attention.n_kv_heads; }
  int32_t position(int64_t row) const { return step.positions[row]; }
  std::span<const float> angles(int64_t row) const {
    const size_t n_rot = 2 * attention.rope.frequencies.size();
    return {step.angles + static_cast<size_t>(row) * n_rot, n_rot};
  }
  int n_spans(int64_t row) const { return position(row) / kSpanPositions + 1; }
  KvPage page(quant::Type type) const {
    return kv_page(type, attention.n_kv_heads, attention.head_dim, kv.page_tokens);
  }
};

struct Tile {
  int64_t first_row = 0;  // all of one sequence, in order of position
  int n_rows = 0;
  int kv_head = 0;

  int64_t last_row() const { return first_row + n_rows - 1; }
};

// Sixteen floats: scratch made of these starts at a cache line, so no load crosses two.
struct alignas(64) CacheLine {
  float values[16];
};

// The softmax of some queries so far. The first queries may have seen nothing yet (l = 0).
class SoftmaxState {
 public:
  void reset(int n_queries, int head_dim);
  void merge(const SoftmaxState& later);

  int n_queries() const { return static_cast<int>(m_.size()); }
  float& m(int q) { return m_[static_cast<size_t>(q)]; }
  float& l(int q) { return l_[static_cast<size_t>(q)]; }
  float* o(int q) { return o_.data()->values + q * row_stride(head_dim_); }
  const float* o(int q) const { return o_.data()->values + q * row_stride(head_dim_); }

 private:
  int head_dim_ = 0;
  std::vector<float> m_, l_;
  std::vector<CacheLine> o_;  // [n_queries, row_stride]
};

// out[r] = o / l for the rows and heads of a tile.
void write_tile(const AttendCall& call, const Tile& tile, SoftmaxState& state);

// One thread's place to work.
class TileWorker {
 public:
  // The part of one span in the softmax of a tile's queries.
  void attend_span(const AttendCall& call, const Tile& tile, int span, SoftmaxState& state);

  // All spans of a tile, one after the other, into out.
  void attend(const AttendCall& call, const Tile& tile);

 private:
  void load_queries(const AttendCall& call, const Tile& tile);
  void attend_block(const AttendCall& call, const Tile& tile, int32_t start, SoftmaxState& state);

  int head_dim_ = 0;
  std::vector<CacheLine> queries_;  // [n_queries, row_stride]
  std::vector<CacheLine> cached_;   // [kBlockPositions, row_stride], keys or values
  std::vector<CacheLine> scores_;   // [n_queries, kBlockPositions]
  std::vector<float> factors_;      // [n_queries]
  std::vector<int32_t> n_seen_;     // [n_queries], of a block
  SoftmaxState all_, span_;
};

}  // namespace sluice::backend::cpu
