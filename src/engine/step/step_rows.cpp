// See step_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/step_rows.h"

#include <algorithm>

#include "backend/cpu/rope.h"
#include "base/check.h"

namespace sluice::engine {

StepRows::StepRows(int n_sequences, int n_ctx, const backend::RopeView& rope)
    : rope_(rope),
      texts_(static_cast<size_t>(n_sequences)),
      before_(static_cast<size_t>(n_sequences), 0) {
  for (auto& text : texts_) text.reserve(static_cast<size_t>(n_ctx));  // no step allocates
  known_angles_.reserve(2 * rope.frequencies.size() * static_cast<size_t>(n_ctx));
}

void StepRows::append_angles(int32_t position) {
  const size_t n_rot = 2 * rope_.frequencies.size(),
               end = n_rot * static_cast<size_t>(position + 1);
  if (n_rot == 0) return;
  while (known_angles_.size() < end) {
    const size_t first = known_angles_.size();
    known_angles_.resize(first + n_rot);
    backend::cpu::rope_angles(rope_, static_cast<int32_t>(first / n_rot),
                              std::span(known_angles_).last(n_rot));
  }
  angles_.insert(angles_.end(), known_angles_.begin() + static_cast<std::ptrdiff_t>(end - n_rot),
                 known_angles_.begin() + static_cast<std::ptrdiff_t>(end));
}

void StepRows::append(std::span<const StepRow> rows, std::span<KvCache* const> caches) {
  for (size_t s = 0; s < texts_.size(); ++s) before_[s] = static_cast<int>(texts_[s].size());
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  logit_rows_.clear();
  wants_all_.clear();
  wants_best_.clear();
  n_best_ = 0;
  for (const StepRow& row : rows) {
    std::vector<TokenId>& text = texts_[static_cast<size_t>(row.sequence.value)];
    // A GPU's attention and recurrent layers count on rows of a sequence side by side.
    const bool is_first = std::ssize(text) == before_[static_cast<size_t>(row.sequence.value)];
    CHECK(is_first || sequences_.back() == row.sequence.value);
    if (row.wants_logits || row.n_best > 0) {
      logit_rows_.push_back(static_cast<int32_t>(tokens_.size()));
    }
    wants_all_.push_back(row.wants_logits);
    wants_best_.push_back(row.n_best > 0);
    CHECK(row.n_best <= backend::kMaxBest);
    n_best_ = std::max(n_best_, row.n_best);
    tokens_.push_back(row.token);
    positions_.push_back(static_cast<int32_t>(text.size()));
    text.push_back(row.token);
    sequences_.push_back(row.sequence.value);
  }
  n_live_ = static_cast<int32_t>(tokens_.size());
  n_logits_ = static_cast<int32_t>(logit_rows_.size());
  angles_.clear();
  for (const int32_t position : positions_) append_angles(position);
  writes_.clear();
  for (size_t s = 0; s < texts_.size(); ++s) {
    const auto length = static_cast<int>(texts_[s].size());
    if (length == before_[s]) continue;
    writes_.push_back({SequenceId(static_cast<int32_t>(s)), before_[s], length});
  }
  for (const StepRow& row : rows) {
    if (!row.is_decode && !row.ends_message) continue;
    KvWrite& write = *std::ranges::find(writes_, row.sequence, &KvWrite::sequence);
    write.is_decode |= row.is_decode;
    write.ends_message |= row.ends_message;
  }
  for (KvCache* cache : caches) cache->reserve(writes_);
}

void StepRows::take_back(std::span<KvCache* const> caches) {
  for (size_t s = 0; s < before_.size(); ++s) {
    truncate(SequenceId(static_cast<int32_t>(s)), before_[s], caches);
  }
}

StepSize StepRows::size() const {
  const int last = positions_.empty() ? -1 : *std::ranges::max_element(positions_);
  return {static_cast<int>(tokens_.size()), last + 1};
}

void StepRows::truncate(SequenceId sequence, int n_tokens, std::span<KvCache* const> caches) {
  CHECK(n_tokens >= 0 && n_tokens <= this->n_tokens(sequence));
  texts_[static_cast<size_t>(sequence.value)].resize(static_cast<size_t>(n_tokens));
  for (KvCache* cache : caches) cache->truncate(sequence, n_tokens);
}

void StepRows::replace(SequenceId sequence, std::span<const TokenId> tokens,
                       std::span<KvCache* const> caches) {
  truncate(sequence, 0, caches);
  const KvWrite write{sequence, 0, static_cast<int>(tokens.size())};
  try {
    for (KvCache* cache : caches) cache->reserve({&write, 1});
  } catch (...) {
    truncate(sequence, 0, caches);
    throw;
  }
  texts_[static_cast<size_t>(sequence.value)].assign(tokens.begin(), tokens.end());
}

void StepRows::fork(SequenceId from, SequenceId to, int n_tokens,
                    std::span<KvCache* const> caches) {
  CHECK(n_tokens >= 0 && n_tokens <= this->n_tokens(from));
  const std::span<const TokenId> kept = text(from).first(static_cast<size_t>(n_tokens));
  texts_[static_cast<size_t>(to.value)].assign(kept.begin(), kept.end());
  for (KvCache* cache : caches) cache->fork(from, to, n_tokens);
}

}  // namespace sluice::engine
