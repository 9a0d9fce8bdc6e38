// How keys or values stand in a page of the KV cache, for whoever writes and reads pages, on the
// CPU or in a kernel (all of it is constexpr, which nvcc compiles for both). A page has a part for
// each kv head, of page_tokens rows:
//   f32, f16, bf16  values [page_tokens, head_dim]
//   q8_0            int8 [page_tokens, head_dim], then f16 scales [page_tokens, head_dim / 32]
//   q4_0            nibbles [page_tokens, head_dim / 2], then scales as of q8_0
// Nibbles of a block of 32 are 16 bytes: byte i has element i below and element i + 16 above. So
// integers and scales are read aligned, which GGUF's blocks of 34 and 18 bytes are not. Keys of
// q4_0 are rotated first (kv_rotation.h).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "quant/type.h"

namespace sluice::backend {

constexpr int kKvBlock = 32;  // values that share a scale

struct KvPage {
  int n_kv_heads;
  int page_tokens;
  int64_t row_bytes;    // values or integers of one token
  int64_t scale_bytes;  // scales of one token; 0 for float types
  int64_t scales_at;    // in a head's part
  int64_t head_bytes;   // of a head's part

  constexpr int64_t page_bytes() const { return n_kv_heads * head_bytes; }
  // From the first page on.
  constexpr int64_t row_at(int64_t page, int64_t kv_head, int64_t token) const {
    return (page * n_kv_heads + kv_head) * head_bytes + token * row_bytes;
  }
  constexpr int64_t scales_of(int64_t page, int64_t kv_head, int64_t token) const {
    return row_at(page, kv_head, 0) + scales_at + token * scale_bytes;
  }
};

// Of a type that a cache can have, and heads of whole blocks.
constexpr KvPage kv_page(quant::Type type, int n_kv_heads, int head_dim, int page_tokens) {
  constexpr int64_t kAlignment = 16;  // of a quantised head's part: one load of a GPU's thread
  const bool is_float = quant::is_float(type);
  const int64_t bits = type == quant::Type::f32    ? 32
                       : is_float                  ? 16
                       : type == quant::Type::q8_0 ? 8
                                                   : 4;
  KvPage page{};
  page.n_kv_heads = n_kv_heads;
  page.page_tokens = page_tokens;
  page.row_bytes = head_dim * bits / 8;
  page.scale_bytes = is_float ? 0 : head_dim / kKvBlock * 2;
  page.scales_at = page_tokens * page.row_bytes;
  page.head_bytes = page.scales_at + page_tokens * page.scale_bytes;
  if (!is_float) page.head_bytes = (page.head_bytes + kAlignment - 1) / kAlignment * kAlignment;
  return page;
}

}  // namespace sluice::backend
