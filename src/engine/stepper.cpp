// See stepper.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/stepper.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::engine {

Stepper::Stepper(const model::Model& model, std::unique_ptr<backend::Ops> ops, const KvOptions& kv,
                 int max_rows, std::unique_ptr<model::ExpertRunner> experts)
    : model_(model),
      ops_(std::move(ops)),
      kv_(*ops_, model.config(), kv),
      activations_(*ops_, model, max_rows),
      experts_(experts ? std::move(experts) : std::make_unique<ResidentExperts>(*ops_, model)),
      lengths_(static_cast<size_t>(kv.n_sequences), 0) {}

void Stepper::step(std::span<const StepRow> rows, const OnLogits& on_logits) {
  CHECK(!rows.empty() && std::ssize(rows) <= max_rows());
  tokens_.clear();
  positions_.clear();
  sequences_.clear();
  logit_rows_.clear();
  for (const StepRow& row : rows) {
    int& length = lengths_[static_cast<size_t>(row.sequence.value)];
    if (row.wants_logits) logit_rows_.push_back(static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(row.token);
    positions_.push_back(length++);
    sequences_.push_back(row.sequence.value);
    kv_.reserve(row.sequence, length);
  }
  model::Step step{*ops_,
                   *experts_,
                   {tokens_, positions_, sequences_, kv_.page_table(), kv_.table_stride()},
                   kv_.layers(),
                   activations_.view(std::ssize(tokens_))};
  model_.forward(step);

  const std::span<const int32_t> wanted = logit_rows_;
  for (size_t begin = 0; begin < wanted.size(); begin += kMaxLogitRows) {
    const auto some = wanted.subspan(begin, std::min<size_t>(kMaxLogitRows, wanted.size() - begin));
    const backend::ConstRowsView logits = model_.logits(step, some);
    for (size_t i = 0; i < some.size(); ++i) {
      on_logits(some[i], {logits.row(static_cast<int64_t>(i)), static_cast<size_t>(logits.n_cols)});
    }
  }
}

void Stepper::truncate(SequenceId sequence, int n_tokens) {
  int& length = lengths_[static_cast<size_t>(sequence.value)];
  CHECK(n_tokens >= 0 && n_tokens <= length);
  length = n_tokens;
  kv_.truncate(sequence, n_tokens);
}

}  // namespace sluice::engine
