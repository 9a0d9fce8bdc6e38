// See attend_tile.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attend_tile.h"

#include <algorithm>
#include <cmath>

#include "quant/swiglu.h"

namespace sluice::backend::cpu {
namespace {

size_t lines(int64_t n_floats) { return static_cast<size_t>((n_floats + 15) / 16); }

CachedRows cached_rows(const AttendCall& call, const Tile& tile, quant::Type type,
                       const std::byte* data) {
  const int64_t sequence = call.step.sequences[tile.first_row];
  return {type,
          call.attention.head_dim,
          {.data = data,
           .pages = call.step.page_table + sequence * call.step.table_stride,
           .page = call.page(type),
           .kv_head = tile.kv_head}};
}

}  // namespace

void SoftmaxState::reset(int n_queries, int head_dim) {
  head_dim_ = head_dim;
  m_.assign(static_cast<size_t>(n_queries), -INFINITY);
  l_.assign(static_cast<size_t>(n_queries), 0.0f);
  o_.assign(lines(int64_t{n_queries} * row_stride(head_dim)), CacheLine{});
}

void SoftmaxState::merge(const SoftmaxState& later) {
  for (size_t q = 0; q < m_.size(); ++q) {
    if (later.l_[q] == 0.0f) continue;
    const float m = std::max(m_[q], later.m_[q]);
    const float factor = quant::contract_exp(m_[q] - m);
    const float later_factor = quant::contract_exp(later.m_[q] - m);
    m_[q] = m;
    l_[q] = std::fma(l_[q], factor, later.l_[q] * later_factor);
    float* x = o(static_cast<int>(q));
    const float* y = later.o(static_cast<int>(q));
    for (int i = 0; i < head_dim_; ++i) x[i] = std::fma(x[i], factor, y[i] * later_factor);
  }
}

void write_tile(const AttendCall& call, const Tile& tile, SoftmaxState& state) {
  const int dim = call.attention.head_dim, group = call.group();
  for (int q = 0; q < state.n_queries(); ++q) {
    const int64_t column = int64_t{tile.kv_head * group + q % group} * dim;
    float* out = call.out.row(tile.first_row + q / group) + column;
    const float* o = state.o(q);
    const float l = state.l(q);
    for (int i = 0; i < dim; ++i) out[i] = o[i] / l;
  }
}

void TileWorker::load_queries(const AttendCall& call, const Tile& tile) {
  const int dim = call.attention.head_dim, group = call.group();
  const int n_queries = tile.n_rows * group, stride = row_stride(dim);
  if (dim != head_dim_) {  // what is behind head_dim must be 0
    head_dim_ = 0;         // until there is room: memory may run out
    queries_.clear();
    cached_.assign(lines(int64_t{kBlockPositions} * stride), CacheLine{});
    head_dim_ = dim;
  }
  const auto grow = [](auto& values, size_t n) { values.resize(std::max(values.size(), n)); };
  grow(queries_, lines(int64_t{n_queries} * stride));
  grow(scores_, lines(int64_t{n_queries} * kBlockPositions));
  grow(factors_, static_cast<size_t>(n_queries));
  grow(n_seen_, static_cast<size_t>(n_queries));
  for (int q = 0; q < n_queries; ++q) {
    const int64_t column = (tile.kv_head * group + q % group) * call.attention.q_stride();
    std::copy_n(call.qkv.row(tile.first_row + q / group) + column, dim,
                queries_.data()->values + q * stride);
  }
}

// Positions [start, start + kBlockPositions).
void TileWorker::attend_block(const AttendCall& call, const Tile& tile, int32_t start,
                              SoftmaxState& state) {
  const int dim = call.attention.head_dim, group = call.group(), stride = row_stride(dim);
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const auto n_seen_by = [&](int64_t row) {
    return std::min(kBlockPositions, call.position(row) + 1 - start);
  };
  int first_row = 0;  // of the tile, that sees any of it
  while (n_seen_by(tile.first_row + first_row) <= 0) ++first_row;
  const int first = first_row * group, n_queries = tile.n_rows * group - first;
  const int32_t n_positions = call.position(tile.last_row()) + 1;
  const int n_keys = n_seen_by(tile.last_row());
  float* cached = cached_.data()->values;
  float* scores = scores_.data()->values;

  const CachedRows keys = cached_rows(call, tile, call.kv.k_type, call.kv.k);
  const CachedRows values = cached_rows(call, tile, call.kv.v_type, call.kv.v);
  // Of positions start + t on, a number that the inner loops can take: float types of whole columns
  // where they lie, which is a quarter faster in decode than to widen them first.
  const auto rows = [&](const CachedRows& from, quant::Type type, int t, int multiple) {
    if (quant::is_float(type) && dim % 32 == 0) {
      FloatRows some = from.in_place(start + t, n_keys - t);
      some.n -= some.n % multiple;
      if (some.n > 0) return some;
    }
    return from.widened(start + t, n_keys - t, stride, cached);
  };

  for (int t = 0; t < n_keys;) {
    const FloatRows some = rows(keys, call.kv.k_type, t, kKeysAtOnce);
    score_block(queries_.data()->values + first * stride, n_queries, some, dim, scores + t,
                Ahead(values, start + t, some.n, n_score_turns(n_queries, some.n)));
    t += some.n;
  }
  for (int q = 0; q < n_queries; ++q) {
    const auto i = static_cast<size_t>(q);
    n_seen_[i] = n_seen_by(tile.first_row + (first + q) / group);
    factors_[i] = soften_block(scores + q * kBlockPositions, n_seen_[i], scale, state.m(first + q),
                               state.l(first + q));
  }
  const int32_t next = start + kBlockPositions;
  const int n_next = n_positions - next;
  for (int t = 0; t < n_keys;) {
    const FloatRows some = rows(values, call.kv.v_type, t, 1);
    weigh_block(
        {scores, factors_.data(), n_seen_.data(), n_queries}, some, t, dim, state.o(first),
        Ahead(keys, next + t, std::clamp(n_next - t, 0, some.n), n_weigh_turns(n_queries, dim)));
    std::ranges::fill(factors_, 1.0f);
    t += some.n;
  }
}

void TileWorker::attend_span(const AttendCall& call, const Tile& tile, int span,
                             SoftmaxState& state) {
  load_queries(call, tile);
  state.reset(tile.n_rows * call.group(), call.attention.head_dim);
  const int32_t start = span * kSpanPositions;
  const int32_t end = std::min(start + kSpanPositions, call.position(tile.last_row()) + 1);
  for (int32_t t = start; t < end; t += kBlockPositions) attend_block(call, tile, t, state);
}

void TileWorker::attend(const AttendCall& call, const Tile& tile) {
  attend_span(call, tile, 0, all_);
  for (int span = 1; span < call.n_spans(tile.last_row()); ++span) {
    attend_span(call, tile, span, span_);
    all_.merge(span_);
  }
  write_tile(call, tile, all_);
}

}  // namespace sluice::backend::cpu
