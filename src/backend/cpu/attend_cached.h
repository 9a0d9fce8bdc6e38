// One kv head's keys or values of a sequence, found through its page table: as rows of floats that
// the inner loops can read, or asked for ahead of time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "backend/cpu/kv_rows.h"
#include "backend/kv_page.h"

namespace sluice::backend::cpu {

// Rows of a float type, n of them.
struct FloatRows {
  quant::Type type;
  const std::byte* data;
  int64_t row_bytes;  // from one to the next
  int n;
};

class CachedRows {
 public:
  struct Place {
    const std::byte* data;  // pages
    const int32_t* pages;   // of the sequence
    KvPage page;
    int kv_head;
  };
  CachedRows(quant::Type type, int head_dim, const Place& place)
      : type_(type), head_dim_(head_dim), place_(place) {}

  // As many of positions [first, first + n) as lie together, where they lie. Only float types.
  FloatRows in_place(int32_t first, int n) const {
    const int n_together = place_.page.page_tokens - first % place_.page.page_tokens;
    return {type_, at(first).values, place_.page.row_bytes, std::min(n, n_together)};
  }

  // Positions [first, first + n) as f32 in `out`, whose rows lie `stride` apart.
  FloatRows widened(int32_t first, int n, int stride, float* out) const {
    for (int t = 0; t < n; ++t) {
      const Row row = at(first + t);
      load_kv_row(type_, row.values, row.scales,
                  {out + t * stride, static_cast<size_t>(head_dim_)});
    }
    return {quant::Type::f32, reinterpret_cast<const std::byte*>(out), int64_t{stride} * 4, n};
  }

  // Inlined by force: GCC 12 takes a function that does no more for one without effect, and drops
  // its calls.
  [[gnu::always_inline]] void prefetch(int32_t position) const {
    constexpr int64_t kLineBytes = 64;
    const Row row = at(position);
    for (int64_t i = 0; i < place_.page.row_bytes; i += kLineBytes) {
      __builtin_prefetch(row.values + i);
    }
    if (place_.page.scale_bytes > 0) __builtin_prefetch(row.scales);
  }

 private:
  struct Row {
    const std::byte* values;
    const std::byte* scales;
  };
  Row at(int32_t position) const {
    const auto& [data, pages, page, kv_head] = place_;
    const int32_t id = pages[position / page.page_tokens], token = position % page.page_tokens;
    return {data + page.row_at(id, kv_head, token), data + page.scales_of(id, kv_head, token)};
  }

  quant::Type type_;
  int head_dim_;
  Place place_;
};

// Rows that will be read soon, asked for while something else is computed: some with each turn of
// that work, all of them in n_turns. Evenly, because a core can have only two dozen misses under
// way: with most of them in the first turns decode was 7 % slower.
class Ahead {
 public:
  Ahead(const CachedRows& rows, int32_t first, int n, int n_turns)
      : rows_(rows), next_(first), n_(n), n_turns_(n_turns) {}

  void turn() {
    for (due_ += n_; due_ >= n_turns_; due_ -= n_turns_) rows_.prefetch(next_++);
  }

 private:
  const CachedRows& rows_;
  int32_t next_;
  int n_, n_turns_;
  int due_ = 0;  // in rows * n_turns
};

}  // namespace sluice::backend::cpu
