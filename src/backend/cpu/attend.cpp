// See attend.h. The plain form: every key and value is widened when it is read, scores of one row
// and one group of heads are held whole, and their order depends on the length alone.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/attend.h"

#include <algorithm>
#include <cmath>

#include "backend/cpu/rms_norm.h"
#include "backend/cpu/rope.h"
#include "backend/cpu/softmax.h"
#include "quant/decode.h"
#include "quant/dot.h"
#include "quant/encode.h"

namespace sluice::backend::cpu {
namespace {

// The place of a kv head's entry for a position in a layer's keys (or values).
class PagedRows {
 public:
  PagedRows(const AttentionView& attention, const StepView& step, const KvLayerView& kv,
            int64_t row)
      : table_(step.page_table + step.sequences[static_cast<size_t>(row)] * step.table_stride),
        n_kv_heads_(attention.n_kv_heads),
        page_tokens_(kv.page_tokens) {}

  uint64_t index(int kv_head, int32_t position) const {
    const int64_t page = table_[position / page_tokens_];
    const int64_t slot = (page * n_kv_heads_ + kv_head) * page_tokens_ + position % page_tokens_;
    return static_cast<uint64_t>(slot);
  }

 private:
  const int32_t* table_;
  int64_t n_kv_heads_;
  int32_t page_tokens_;
};

void normalise_heads(HeadNorm kind, const NormView& norm, int n_heads, int head_dim, float* heads) {
  const auto dim = static_cast<size_t>(head_dim);
  if (kind == HeadNorm::whole) {
    rms_norm({heads, dim * static_cast<size_t>(n_heads)}, norm, heads);
  } else if (kind == HeadNorm::per_head) {
    for (int h = 0; h < n_heads; ++h) rms_norm({heads + h * dim, dim}, norm, heads + h * dim);
  }
}

}  // namespace

void Attend::append(const Call& call, int64_t row, Thread& thread) {
  const auto& [qkv, attention, step, kv, out] = call;
  const int dim = attention.head_dim;
  float* q = qkv.row(row);
  float* k = q + attention.q_cols();
  const float* v = k + attention.kv_cols();
  const int32_t position = step.positions[static_cast<size_t>(row)];

  normalise_heads(attention.head_norm, attention.q_norm, attention.n_heads, dim, q);
  normalise_heads(attention.head_norm, attention.k_norm, attention.n_kv_heads, dim, k);
  rope_angles(attention.rope, position, thread.angles);
  for (int h = 0; h < attention.n_heads; ++h) {
    rope_turn(attention.rope.pairing, thread.angles, q + h * dim);
  }
  const PagedRows place(attention, step, kv, row);
  const uint64_t k_bytes = quant::row_bytes(kv.k_type, dim);
  const uint64_t v_bytes = quant::row_bytes(kv.v_type, dim);
  for (int h = 0; h < attention.n_kv_heads; ++h) {
    rope_turn(attention.rope.pairing, thread.angles, k + h * dim);
    const auto n = static_cast<size_t>(dim);
    quant::encode_row(kv.k_type, {k + h * dim, n}, kv.k + place.index(h, position) * k_bytes);
    quant::encode_row(kv.v_type, {v + h * dim, n}, kv.v + place.index(h, position) * v_bytes);
  }
}

// All heads that share one kv head, so that each key and value is widened once for them.
void Attend::attend_group(const Call& call, int64_t row, int kv_head, Thread& thread) {
  const auto& [qkv, attention, step, kv, out] = call;
  const int dim = attention.head_dim;
  const int group = attention.n_heads / attention.n_kv_heads;
  const int64_t first = int64_t{kv_head} * group * dim;
  const float* q = qkv.row(row) + first;
  float* o = out.row(row) + first;
  const int32_t n_positions = step.positions[static_cast<size_t>(row)] + 1;
  const float scale = 1.0f / std::sqrt(static_cast<float>(dim));
  const PagedRows place(attention, step, kv, row);
  const uint64_t k_bytes = quant::row_bytes(kv.k_type, dim);
  const uint64_t v_bytes = quant::row_bytes(kv.v_type, dim);
  thread.scores.resize(static_cast<size_t>(group) * static_cast<size_t>(n_positions));
  thread.cached.resize(static_cast<size_t>(dim));
  const auto scores = [&](int g) {
    return std::span(thread.scores)
        .subspan(static_cast<size_t>(g) * static_cast<size_t>(n_positions),
                 static_cast<size_t>(n_positions));
  };

  for (int32_t t = 0; t < n_positions; ++t) {
    quant::decode_row(kv.k_type, kv.k + place.index(kv_head, t) * k_bytes, thread.cached);
    for (int g = 0; g < group; ++g) {
      const float dot = quant::dot_f32(q + g * dim, thread.cached.data(), dim);
      scores(g)[static_cast<size_t>(t)] = dot * scale;
    }
  }
  for (int g = 0; g < group; ++g) softmax(scores(g));
  std::fill_n(o, group * dim, 0.0f);
  for (int32_t t = 0; t < n_positions; ++t) {
    quant::decode_row(kv.v_type, kv.v + place.index(kv_head, t) * v_bytes, thread.cached);
    for (int g = 0; g < group; ++g) {
      const float p = scores(g)[static_cast<size_t>(t)];
      for (int i = 0; i < dim; ++i) {
        o[g * dim + i] = std::fma(p, thread.cached[static_cast<size_t>(i)], o[g * dim + i]);
      }
    }
  }
}

void Attend::run(RowsView qkv, const AttentionView& attention, const StepView& step,
                 const KvLayerView& kv, RowsView out) {
  const Call call{qkv, attention, step, kv, out};
  pool_.parallel_for(qkv.n_rows, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t r = begin; r < end; ++r) append(call, r, threads_[static_cast<size_t>(thread)]);
  });
  const int64_t n_groups = attention.n_kv_heads;
  pool_.parallel_for(qkv.n_rows * n_groups, 1, [&](int64_t begin, int64_t end, int thread) {
    for (int64_t i = begin; i < end; ++i) {
      attend_group(call, i / n_groups, static_cast<int>(i % n_groups),
                   threads_[static_cast<size_t>(thread)]);
    }
  });
}

}  // namespace sluice::backend::cpu
