// The rows of one step, as operations see them, and how far each sequence has come.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "backend/views.h"
#include "base/ids.h"
#include "engine/step/kv_cache.h"

namespace sluice::engine {

// Rows of one sequence stand side by side in a step.
struct StepRow {
  TokenId token = 0;
  SequenceId sequence;
  bool wants_logits = false;
  int n_best = 0;  // how many of its best logits are wanted, at most kMaxBest
  // Of a text that goes on token by token while the step takes in another's prompt: behind it no
  // point to go back to is kept.
  bool is_decode = false;
  bool ends_message = false;  // of a prompt: texts often come back to behind it
};

struct StepSize {
  int n_rows = 0;
  int n_past = 0;  // tokens that the longest sequence has with them
};

class StepRows {
 public:
  // n_ctx: tokens that each sequence can hold. What `rope` points to outlives it.
  StepRows(int n_sequences, int n_ctx, const backend::RopeView& rope);

  // Appends each row's token to its sequence, for which the caches get pages. Where it throws,
  // take_back() undoes what was done.
  void append(std::span<const StepRow> rows, std::span<KvCache* const> caches);
  // Undoes the last append.
  void take_back(std::span<KvCache* const> caches);

  backend::StepView view(const KvCache& cache) const {
    return {.n_rows = n_rows(),
            .n_live = &n_live_,
            .tokens = tokens_.data(),
            .positions = positions_.data(),
            .sequences = sequences_.data(),
            .angles = angles_.data(),
            .page_table = cache.page_table(),
            .table_stride = cache.table_stride(),
            .n_logits = &n_logits_,
            .logit_rows = logit_rows_.data(),
            .n_best = &n_best_};
  }
  int64_t n_rows() const { return std::ssize(tokens_); }
  std::span<const KvWrite> writes() const { return writes_; }  // of the last append
  StepSize size() const;
  std::span<const int32_t> logit_rows() const { return logit_rows_; }  // that want some or all
  bool wants_all(int64_t row) const { return wants_all_[static_cast<size_t>(row)]; }
  bool wants_best(int64_t row) const { return wants_best_[static_cast<size_t>(row)]; }
  // Whether any row wants all of its logits.
  bool any_wants_all() const { return std::ranges::find(wants_all_, true) != wants_all_.end(); }

  std::span<const TokenId> text(SequenceId sequence) const {
    return texts_[static_cast<size_t>(sequence.value)];
  }
  int n_tokens(SequenceId sequence) const { return static_cast<int>(text(sequence).size()); }
  void truncate(SequenceId sequence, int n_tokens, std::span<KvCache* const> caches);
  // The sequence becomes these tokens, with pages of its own for them. Where it throws, it is
  // empty.
  void replace(SequenceId sequence, std::span<const TokenId> tokens,
               std::span<KvCache* const> caches);
  // `to` becomes the first n_tokens of `from`.
  void fork(SequenceId from, SequenceId to, int n_tokens, std::span<KvCache* const> caches);

 private:
  void append_angles(int32_t position);

  backend::RopeView rope_;
  std::vector<std::vector<TokenId>> texts_;  // by sequence
  std::vector<int> before_;                  // how long they were before the last append
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> sequences_;
  int32_t n_live_ = 0;
  std::vector<float> angles_;
  // By position, up to the highest that there was: 2,048 rows' cosines and sines took 3.3 ms.
  std::vector<float> known_angles_;
  std::vector<int32_t> logit_rows_;
  int32_t n_logits_ = 0;
  int32_t n_best_ = 0;                        // the most of any row
  std::vector<bool> wants_all_, wants_best_;  // by row
  std::vector<KvWrite> writes_;
};

}  // namespace sluice::engine
