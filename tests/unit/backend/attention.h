// One attention layer for tests: its shape, a cache with a page table of its own, and sequences of
// random qkv rows that can be run in any division into steps.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>

#include "backend/cpu/rope.h"
#include "backend/kv_page.h"
#include "backend/ops.h"
#include "unit/backend/samples.h"

namespace sluice::backend::test {

struct AttentionShape {
  int n_heads = 4;
  int n_kv_heads = 2;
  int head_dim = 32;
  int n_rot = 32;
  HeadNorm head_norm = HeadNorm::none;
  RopePairing pairing = RopePairing::halves;
  float magnitude = 1.0f;
  quant::Type k_type = quant::Type::f32;
  quant::Type v_type = quant::Type::f32;
};

inline std::string describe(const AttentionShape& s) {
  return name_of(s.k_type) + "/" + name_of(s.v_type) + " heads " + std::to_string(s.n_heads) + "/" +
         std::to_string(s.n_kv_heads) + " of " + std::to_string(s.head_dim) + " rot " +
         std::to_string(s.n_rot) + " norm " + std::to_string(static_cast<int>(s.head_norm)) +
         (s.pairing == RopePairing::halves ? " halves" : " adjacent");
}

// The weights of an attention and what its view borrows.
struct Attention {
  explicit Attention(const AttentionShape& s) : shape(s) {
    for (int j = 0; j < s.n_rot / 2; ++j) {
      frequencies.push_back(static_cast<float>(std::pow(100.0, -2.0 * j / s.n_rot)));
    }
    view = {.n_heads = s.n_heads, .n_kv_heads = s.n_kv_heads, .head_dim = s.head_dim};
    const bool whole = s.head_norm == HeadNorm::whole;
    q_norm = random_norm_weight(whole ? view.q_cols() : s.head_dim, 71);
    k_norm = random_norm_weight(whole ? view.kv_cols() : s.head_dim, 72);
    view.head_norm = s.head_norm;
    if (s.head_norm != HeadNorm::none) {
      view.q_norm = {q_norm.data(), 1e-6f};
      view.k_norm = {k_norm.data(), 1e-6f};
    }
    view.rope = {s.pairing, frequencies, s.magnitude};
  }
  Attention(const Attention&) = delete;

  // A sequence's rows of [q, k, v].
  Rows random_qkv(int64_t n_rows, uint64_t seed) const {
    return Rows::random(n_rows, view.qkv_cols(), seed);
  }

  AttentionShape shape;
  std::vector<float> frequencies, q_norm, k_norm;
  AttentionView view;
};

// Room for every sequence of up to n_positions; pages are dealt out in a random order.
class Cache {
 public:
  Cache(const Attention& attention, int n_sequences, int n_positions, int page_tokens,
        uint64_t seed)
      : attention_(attention),
        stride_((n_positions + page_tokens - 1) / page_tokens),
        n_pages_(stride_ * n_sequences + 2),  // two that nobody holds
        page_tokens_(page_tokens) {
    std::vector<int32_t> pages(static_cast<size_t>(n_pages_));
    for (size_t i = 0; i < pages.size(); ++i) {
      pages[i] = static_cast<int32_t>(i);
      std::swap(pages[i], pages[random_bits(seed, i) % (i + 1)]);
    }
    table_.assign(pages.begin(), pages.begin() + stride_ * n_sequences);
    k_.assign(static_cast<size_t>(n_pages_ * page(attention.shape.k_type).page_bytes()),
              kUnwritten);
    v_.assign(static_cast<size_t>(n_pages_ * page(attention.shape.v_type).page_bytes()),
              kUnwritten);
  }

  static constexpr std::byte kUnwritten{0xa5};

  KvLayerView view() {
    return {attention_.shape.k_type, attention_.shape.v_type, k_.data(), v_.data(), page_tokens_};
  }
  const int32_t* table() const { return table_.data(); }
  int64_t stride() const { return stride_; }
  std::span<const std::byte> keys() const { return k_; }

  // The stored key (or value) of a sequence's position, as a row of GGUF.
  std::vector<std::byte> key(int sequence, int position, int kv_head) const {
    return entry(k_, attention_.shape.k_type, sequence, position, kv_head);
  }
  std::vector<std::byte> value(int sequence, int position, int kv_head) const {
    return entry(v_, attention_.shape.v_type, sequence, position, kv_head);
  }

 private:
  KvPage page(quant::Type type) const {
    return kv_page(type, attention_.shape.n_kv_heads, attention_.shape.head_dim, page_tokens_);
  }

  std::vector<std::byte> entry(const std::vector<std::byte>& bytes, quant::Type type, int sequence,
                               int position, int kv_head) const {
    const int64_t id = table_[static_cast<size_t>(sequence * stride_ + position / page_tokens_)];
    const int token = position % page_tokens_;
    const std::byte* const row = bytes.data() + page(type).row_at(id, kv_head, token);
    const std::byte* const scales = bytes.data() + page(type).scales_of(id, kv_head, token);
    if (quant::is_float(type)) return {row, row + page(type).row_bytes};
    std::vector<std::byte> out;  // of each block: its scale, then its integers
    const int64_t block_bytes = type == quant::Type::q8_0 ? 32 : 16;
    for (int b = 0; b < attention_.shape.head_dim / 32; ++b) {
      out.insert(out.end(), scales + 2 * b, scales + 2 * b + 2);
      out.insert(out.end(), row + b * block_bytes, row + (b + 1) * block_bytes);
    }
    return out;
  }

  const Attention& attention_;
  int64_t stride_;
  int64_t n_pages_;
  int page_tokens_;
  std::vector<int32_t> table_;
  std::vector<std::byte> k_, v_;
};

// Row `position` of sequence `sequence`.
struct StepEntry {
  int sequence;
  int position;
};

// The data of a step of such rows; the first n_live of them are real (-1: all).
struct StepData {
  StepData(const RopeView& rope, std::span<const StepEntry> entries, int32_t n = -1)
      : n_live(n < 0 ? static_cast<int32_t>(entries.size()) : n), tokens(entries.size(), 0) {
    const size_t n_rot = 2 * rope.frequencies.size();
    angles.resize(entries.size() * n_rot);
    for (const StepEntry& e : entries) {
      cpu::rope_angles(rope, e.position,
                       std::span(angles).subspan(positions.size() * n_rot, n_rot));
      logit_rows.push_back(static_cast<int32_t>(positions.size()));
      positions.push_back(e.position);
      sequences.push_back(e.sequence);
    }
  }

  StepView view(const Cache& cache) const {
    return {.n_rows = std::ssize(tokens),
            .n_live = &n_live,
            .tokens = tokens.data(),
            .positions = positions.data(),
            .sequences = sequences.data(),
            .angles = angles.data(),
            .page_table = cache.table(),
            .table_stride = cache.stride(),
            .n_logits = &n_live,
            .logit_rows = logit_rows.data()};
  }

  int32_t n_live;
  std::vector<TokenId> tokens;
  std::vector<int32_t> positions, sequences, logit_rows;
  std::vector<float> angles;
};

// Runs one step of the given rows; what each wrote goes to outs[sequence] at its position.
inline void run_step(Ops& ops, const Attention& attention, Cache& cache,
                     std::span<const Rows> sequences, std::span<const StepEntry> entries,
                     std::span<Rows> outs) {
  Rows qkv(std::ssize(entries), sequences[0].n_cols);
  Rows out(qkv.n_rows, attention.view.q_cols());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto from = sequences[static_cast<size_t>(entries[i].sequence)].row(entries[i].position);
    std::ranges::copy(from, qkv.view().row(static_cast<int64_t>(i)));
  }
  const StepData step(attention.view.rope, entries);
  ops.attend(qkv.view(), attention.view, step.view(cache), cache.view(), out.view());
  for (size_t i = 0; i < entries.size(); ++i) {
    RowsView to = outs[static_cast<size_t>(entries[i].sequence)].view();
    std::ranges::copy(out.row(static_cast<int64_t>(i)), to.row(entries[i].position));
  }
}

// Positions [begin, end) of one sequence.
inline std::vector<StepEntry> span_of(int sequence, int begin, int end) {
  std::vector<StepEntry> entries;
  for (int p = begin; p < end; ++p) entries.push_back({sequence, p});
  return entries;
}

}  // namespace sluice::backend::test
