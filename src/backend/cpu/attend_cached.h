// One kv head's keys or values of a sequence, found through its page table: as rows of floats that
// the inner loops can read, or asked for ahead of time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "quant/decode.h"

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
    const std::byte* data;  // pages of [n_kv_heads, page_tokens, head_dim]
    const int32_t* pages;   // of the sequence
    int page_tokens, n_kv_heads, kv_head;
  };
  CachedRows(quant::Type type, int head_dim, const Place& place)
      : type_(type),
        head_dim_(head_dim),
        row_bytes_(quant::row_bytes(type, head_dim)),
        place_(place) {}

  // As many of positions [first, first + n) as lie together, where they lie. Only float types.
  FloatRows in_place(int32_t first, int n) const {
    const int n_together = place_.page_tokens - first % place_.page_tokens;
    return {type_, at(first), static_cast<int64_t>(row_bytes_), std::min(n, n_together)};
  }

  // Positions [first, first + n) as f32 in `out`, whose rows lie `stride` apart.
  FloatRows widened(int32_t first, int n, int stride, float* out) const {
    for (int t = 0; t < n; ++t) {
      quant::decode_row(type_, at(first + t), {out + t * stride, static_cast<size_t>(head_dim_)});
    }
    return {quant::Type::f32, reinterpret_cast<const std::byte*>(out), int64_t{stride} * 4, n};
  }

  // Inlined by force: GCC 12 takes a function that does no more for one without effect, and drops
  // its calls.
  [[gnu::always_inline]] void prefetch(int32_t position) const {
    constexpr uint64_t kLineBytes = 64;
    const std::byte* row = at(position);
    for (uint64_t i = 0; i < row_bytes_; i += kLineBytes) __builtin_prefetch(row + i);
  }

 private:
  const std::byte* at(int32_t position) const {
    const auto& [data, pages, page_tokens, n_kv_heads, kv_head] = place_;
    const int64_t page = pages[position / page_tokens];
    const int64_t slot = (page * n_kv_heads + kv_head) * page_tokens + position % page_tokens;
    return data + static_cast<uint64_t>(slot) * row_bytes_;
  }

  quant::Type type_;
  int head_dim_;
  uint64_t row_bytes_;
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
