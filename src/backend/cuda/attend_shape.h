// What the kernels of attention are told of a layer, a step and its KV cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>

#include "backend/cuda/cuda_ops_parts.h"

namespace sluice::backend::cuda {

inline NormOfHeads norm_of(HeadNorm norm) {
  return norm == HeadNorm::none       ? NormOfHeads::none
         : norm == HeadNorm::per_head ? NormOfHeads::per_head
                                      : NormOfHeads::whole;
}

inline Attend shape_of(const AttentionView& a, const StepView& step, const KvLayerView& kv) {
  require(kv.page_tokens > 0 && std::has_single_bit(static_cast<unsigned>(kv.page_tokens)),
          "pages of ", kv.page_tokens, " tokens; GPUs need a power of two");
  require(a.n_heads <= kMostHeads, a.n_heads, " heads; ", kMostHeads, " at most");
  require(!a.is_gated || a.head_norm != HeadNorm::whole, "a norm over gated heads");
  Attend p;
  p.n_rows = static_cast<int>(step.n_rows);
  p.n_heads = a.n_heads;
  p.n_kv_heads = a.n_kv_heads;
  p.head_dim = a.head_dim;
  p.is_gated = a.is_gated;
  p.head_norm = norm_of(a.head_norm);
  p.q_norm = a.q_norm.weight;
  p.k_norm = a.k_norm.weight;
  p.eps = a.q_norm.eps;
  p.angles = step.angles;
  p.n_pairs = static_cast<int>(a.rope.frequencies.size());
  p.pairs_are_adjacent = a.rope.pairing == RopePairing::adjacent;
  p.positions = step.positions;
  p.sequences = step.sequences;
  p.n_live = step.n_live;
  p.max_length = static_cast<int>(step.table_stride) * kv.page_tokens;
  p.page_table = step.page_table;
  p.table_stride = static_cast<int>(step.table_stride);
  p.page_shift = std::countr_zero(static_cast<unsigned>(kv.page_tokens));
  p.kv_type = kv.k_type;
  p.k = reinterpret_cast<uint8_t*>(kv.k);
  p.v = reinterpret_cast<uint8_t*>(kv.v);
  return p;
}

}  // namespace sluice::backend::cuda
