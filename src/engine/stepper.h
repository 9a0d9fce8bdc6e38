// Takes steps of a model: rows of one or several sequences in, logits out. Knows tokens and
// positions, not texts; session.cpp builds on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "base/ids.h"
#include "engine/activations.h"
#include "engine/kv_cache.h"
#include "engine/resident_experts.h"
#include "model/model.h"

namespace sluice::engine {

struct StepRow {
  TokenId token = 0;
  SequenceId sequence;
  bool wants_logits = false;
};

class Stepper {
 public:
  // The model must outlive it; `ops` is its own, and so is what runs the experts: without one, all
  // stand in memory of `ops`. max_rows: the widest step.
  Stepper(const model::Model& model, std::unique_ptr<backend::Ops> ops, const KvOptions& kv,
          int max_rows, std::unique_ptr<model::ExpertRunner> experts = nullptr);

  // Gets a row's index and its n_vocab logits, valid during the call.
  using OnLogits = std::function<void(int64_t row, std::span<const float> logits)>;

  // Appends each row's token to its sequence and hands over the logits of the rows that want them,
  // in order. The caller has made sure that the tokens exist and the context has room.
  void step(std::span<const StepRow> rows, const OnLogits& on_logits);

  void truncate(SequenceId sequence, int n_tokens);
  int n_tokens(SequenceId sequence) const { return lengths_[static_cast<size_t>(sequence.value)]; }
  int max_rows() const { return activations_.max_rows(); }
  uint64_t kv_bytes() const { return kv_.n_bytes(); }

 private:
  const model::Model& model_;
  std::unique_ptr<backend::Ops> ops_;
  KvCache kv_;
  ActivationsBuffer activations_;
  std::unique_ptr<model::ExpertRunner> experts_;
  std::vector<int> lengths_;  // by sequence
  std::vector<TokenId> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> sequences_;
  std::vector<int32_t> logit_rows_;
};

}  // namespace sluice::engine
