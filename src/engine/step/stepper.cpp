// See stepper.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/stepper.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::engine {

void forward_layers(const model::Model& model, model::Step& step, int first, int last,
                    const OnLayer& on_layer) {
  for (int i = first; i < last; ++i) {
    model.forward(step, i, i + 1);
    if (on_layer) on_layer(i + 1, model.config().n_layers);
  }
}

void tell_rows(const StepRows& rows, std::span<const int32_t> wanted, backend::ConstRowsView logits,
               const backend::PickedRow* picks, const StepListener& listener) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    const int32_t row = wanted[i];
    if (rows.wants_best(row)) listener.on_pick(row, picks[i]);
    if (!rows.wants_all(row)) continue;
    listener.on_logits(row,
                       {logits.row(static_cast<int64_t>(i)), static_cast<size_t>(logits.n_cols)});
  }
}

void Stepper::give_logits(model::Step& step, const StepListener& listener) {
  const std::span<const int32_t> wanted = rows_.logit_rows();
  for (size_t begin = 0; begin < wanted.size(); begin += kMaxLogitRows) {
    const auto some = wanted.subspan(begin, std::min<size_t>(kMaxLogitRows, wanted.size() - begin));
    model_.logits(step, static_cast<int64_t>(begin));
    model_.pick(step, picks_.data(), static_cast<int64_t>(begin));
    tell_rows(rows_, some, step.s.logits, picks_.data(), listener);
  }
}

Stepper::Stepper(const model::Model& model, std::unique_ptr<backend::Ops> ops, const KvOptions& kv,
                 int max_rows, RouteOverride reroute)
    : model_(model),
      ops_(std::move(ops)),
      kv_(memory_of(*ops_), model.config(), kv),
      states_(memory_of(*ops_), model, kv.n_sequences),
      activations_(memory_of(*ops_), model, max_rows),
      forced_(memory_of(*ops_), model.config(), max_rows, std::move(reroute)),
      log_(memory_of(*ops_), model.config().n_layers, max_rows, model.config().n_experts_used),
      resident_(*ops_, model),
      experts_(resident_, log_),
      rows_(kv.n_sequences, kv.n_ctx, model.rope()),
      picks_(static_cast<size_t>(std::min(max_rows, kMaxLogitRows))) {}

void Stepper::step(std::span<const StepRow> rows, policy::Phase phase,
                   const StepListener& listener) {
  CHECK(!rows.empty() && std::ssize(rows) <= max_rows());
  try {
    rows_.append(rows, caches_);
    states_.begin_step(rows_.writes());
    text_memory().make_page_copies();
    log_.begin_step();
    model::Step step{
        *ops_,           experts_, rows_.view(kv_), kv_.layers(), activations_.view(rows_.n_rows()),
        states_.layers()};
    step.rows.forced = forced_.fill(rows_.n_rows(), rows_.n_rows());
    model_.embed(step);
    forward_layers(model_, step, 0, model_.config().n_layers, listener.on_layer);
    give_logits(step, listener);
  } catch (...) {
    states_.drop_step();
    rows_.take_back(caches_);
    throw;
  }
  states_.end_step(phase == policy::Phase::prefill);
}

void Stepper::replay(const backend::StateReplay& replay) {
  for (int i = 0; i < model_.config().n_layers; ++i) {
    const model::Layer& layer = model_.layers()[static_cast<size_t>(i)];
    if (!layer.delta_net) continue;
    ops_->delta_replay(layer.delta_net, states_.layers()[static_cast<size_t>(i)], replay);
  }
  went_back_.n_replayed += replay.end - replay.begin;
}

TextMemory Stepper::text_memory() {
  const int n_layers = model_.config().n_layers;
  return {.rows = rows_,
          .states = states_,
          .caches = caches_,
          .n_layers = n_layers,
          .replay = [this](const auto& updates) { replay(updates); },
          .copies = {.n_host_layers = n_layers, .device_copy = {}, .device_finish = {}}};
}

void Stepper::truncate(SequenceId sequence, int n_tokens) {
  went_back_.n_computed +=
      compute_again(*this, sequence, text_memory().truncate(sequence, n_tokens));
}

void Stepper::fork(SequenceId from, SequenceId to, int n_tokens) {
  went_back_.n_computed += compute_again(*this, to, text_memory().fork(from, to, n_tokens));
}

}  // namespace sluice::engine
