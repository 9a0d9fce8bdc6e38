// See attend.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attend.h"

#include <algorithm>

#include "backend/cpu/kv_rows.h"
#include "backend/cpu/rms_norm.h"
#include "backend/kv_rotation.h"
#include "base/check.h"
#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

// Queries of a tile: a key or value that comes from memory, or is widened, then serves so many that
// this costs next to nothing, and queries with their outputs stay in L2 (72 KB at head_dim 128).
constexpr int kTileQueries = 64;

// Tiles for each thread, at least, so that none waits long for the last.
constexpr int64_t kTilesPerThread = 4;

struct Heads {
  float* data;
  int n;
  int dim;
  int64_t stride;

  float* at(int h) const { return data + h * stride; }
};

void normalise_heads(HeadNorm kind, const NormView& norm, const Heads& heads) {
  const auto dim = static_cast<size_t>(heads.dim);
  if (kind == HeadNorm::whole) {
    CHECK(heads.stride == heads.dim);
    rms_norm({heads.data, dim * static_cast<size_t>(heads.n)}, norm, heads.data);
  } else if (kind == HeadNorm::per_head) {
    for (int h = 0; h < heads.n; ++h) rms_norm({heads.at(h), dim}, norm, heads.at(h));
  }
}

// out = out * sigmoid(gate), of one row.
void gate_heads(const AttentionView& attention, const float* q, float* out) {
  const int dim = attention.head_dim;
  for (int h = 0; h < attention.n_heads; ++h) {
    const float* const gate = q + h * attention.q_stride() + dim;
    for (int i = 0; i < dim; ++i) out[h * dim + i] *= quant::sigmoid(gate[i]);
  }
}

}  // namespace

void Attend::append(const AttendCall& call, int64_t row) const {
  const auto& [qkv, attention, step, kv, out] = call;
  const int dim = attention.head_dim;
  float* q = qkv.row(row);
  float* k = q + attention.gated_q_cols();
  const float* v = k + attention.kv_cols();

  const Heads queries{q, attention.n_heads, dim, attention.q_stride()};
  const Heads keys{k, attention.n_kv_heads, dim, dim};
  normalise_heads(attention.head_norm, attention.q_norm, queries);
  normalise_heads(attention.head_norm, attention.k_norm, keys);
  for (const Heads& heads : {queries, keys}) {
    for (int h = 0; h < heads.n; ++h) {
      rope_turn(attention.rope.pairing, call.angles(row), heads.at(h));
      if (rotates_keys(kv.k_type)) rotate_head({heads.at(h), static_cast<size_t>(dim)});
    }
  }
  const int32_t position = call.position(row);
  const int64_t page =
      step.page_table[step.sequences[row] * step.table_stride + position / kv.page_tokens];
  const int token = position % kv.page_tokens;
  const auto store = [&](quant::Type type, const float* heads, std::byte* data) {
    const KvPage at = call.page(type);
    for (int h = 0; h < at.n_kv_heads; ++h) {
      store_kv_row(type, {heads + h * dim, static_cast<size_t>(dim)},
                   data + at.row_at(page, h, token), data + at.scales_of(page, h, token));
    }
  };
  store(kv.k_type, k, kv.k);
  store(kv.v_type, v, kv.v);
}

// Rows of one sequence that stand together, as many as fit into a tile and still leave some for
// every thread.
void Attend::divide_into_tiles(const AttendCall& call) {
  const auto sequence = [&](int64_t r) { return call.step.sequences[r]; };
  const int64_t n_rows = *call.step.n_live, n_kv_heads = call.attention.n_kv_heads;
  const int64_t fair = n_rows * n_kv_heads / (kTilesPerThread * pool_.n_threads());
  const int64_t most =
      std::clamp<int64_t>(kTileQueries / call.group(), 1, std::max<int64_t>(fair, 1));
  tiles_.clear();
  for (int64_t first = 0, end = 0; first < n_rows; first = end) {
    while (end < n_rows && end - first < most && sequence(end) == sequence(first)) ++end;
    for (int kv_head = 0; kv_head < n_kv_heads; ++kv_head) {
      tiles_.push_back({first, static_cast<int>(end - first), kv_head});
    }
  }
}

void Attend::attend_tiles(const AttendCall& call) {
  const int64_t n_tiles = std::ssize(tiles_);
  pool_.parallel_for(n_tiles, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {  // the last see most: they begin
      workers_[static_cast<size_t>(thread)].attend(call,
                                                   tiles_[static_cast<size_t>(n_tiles - 1 - i)]);
    }
  });
}

// Every span by itself; then each tile's are merged.
void Attend::attend_parts(const AttendCall& call) {
  parts_.clear();
  for (const Tile& tile : tiles_) {
    for (int span = 0; span < call.n_spans(tile.last_row()); ++span) parts_.push_back({tile, span});
  }
  states_.resize(std::max(states_.size(), parts_.size()));
  pool_.parallel_for(std::ssize(parts_), 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& [tile, span] = parts_[static_cast<size_t>(i)];
      workers_[static_cast<size_t>(thread)].attend_span(call, tile, span,
                                                        states_[static_cast<size_t>(i)]);
    }
  });
  for (size_t i = 0, next = 0; i < parts_.size(); i = next) {
    next = i + 1;
    while (next < parts_.size() && parts_[next].span > 0) states_[i].merge(states_[next++]);
    write_tile(call, parts_[i].tile, states_[i]);
  }
}

void Attend::run(RowsView qkv, const AttentionView& attention, const StepView& step,
                 const KvLayerView& kv, RowsView out) {
  const AttendCall call{qkv, attention, step, kv, out};
  pool_.parallel_for(*step.n_live, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) append(call, r);
  });
  std::fill(out.row(*step.n_live), out.row(out.n_rows), 0.0f);
  divide_into_tiles(call);
  const bool too_few = std::ssize(tiles_) < kTilesPerThread * pool_.n_threads();
  too_few ? attend_parts(call) : attend_tiles(call);
  if (!attention.is_gated) return;
  pool_.parallel_for(*step.n_live, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) gate_heads(attention, qkv.row(r), out.row(r));
  });
}

}  // namespace sluice::backend::cpu
