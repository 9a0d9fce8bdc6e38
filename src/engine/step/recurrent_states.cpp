// See recurrent_states.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recurrent_states.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::engine {

RecurrentStates::RecurrentStates(std::span<const Part> parts, const model::Model& model,
                                 int n_sequences)
    : points_(n_sequences) {
  const auto recurs = [](const model::Layer& layer) { return bool{layer.delta_net}; };
  if (std::ranges::none_of(model.layers(), recurs)) return;
  from_.assign(static_cast<size_t>(n_sequences), -1);
  to_.assign(static_cast<size_t>(n_sequences), -1);
  layers_.resize(model.layers().size());
  n_values_.resize(model.layers().size());
  for (const Part& part : parts) lay_out(part, model);
}

RecurrentStates::RecurrentStates(const backend::Allocate& memory, const model::Model& model,
                                 int n_sequences)
    : RecurrentStates(std::vector<Part>{{memory, 0, model.config().n_layers}}, model, n_sequences) {
}

// Its states, and behind them the updates.
void RecurrentStates::lay_out(const Part& part, const model::Model& model) {
  const auto each = [&](const auto& call) {
    for (auto i = static_cast<size_t>(part.first); i < static_cast<size_t>(part.last); ++i) {
      if (const backend::DeltaNetView& net = model.layers()[i].delta_net) call(i, net);
    }
  };
  int64_t n_values = 0, n_updates = 0;  // of one state, of one token
  each([&](size_t, const backend::DeltaNetView& net) {
    n_values += net.state_values();
    n_updates += net.update_values();
  });
  if (n_values == 0) return;
  const auto n_sequences = static_cast<int>(from_.size());
  const int64_t n_states = policy::n_states(n_sequences) * n_values;
  const int64_t n_all = n_states + int64_t{n_sequences} * policy::kLoggedUpdates * n_updates;
  auto* next =
      memory_.emplace_back(part.memory(static_cast<uint64_t>(n_all) * sizeof(float))).as<float>();
  auto* next_update = next + n_states;
  each([&](size_t i, const backend::DeltaNetView& net) {
    layers_[i] = {.data = next,
                  .stride = n_values,
                  .from = from_.data(),
                  .to = to_.data(),
                  .n_sequences = n_sequences,
                  .updates = next_update,
                  .update_stride = n_updates,
                  .n_places = policy::kLoggedUpdates,
                  .max_logged_rows = policy::kRollbackTokens};
    n_values_[i] = net.state_values();
    next += net.state_values();
    next_update += net.update_values();
  });
}

uint64_t RecurrentStates::n_bytes() const {
  uint64_t sum = 0;
  for (const backend::Buffer& part : memory_) sum += part.n_bytes();
  return sum;
}

void RecurrentStates::begin_step(std::span<const KvWrite> writes) {
  if (!any()) return;
  writes_.assign(writes.begin(), writes.end());
  for (const KvWrite& write : writes_) {
    CHECK(write.begin == points_.n_tokens(write.sequence));
    const auto [from, to] = points_.begin_step(write.sequence);
    from_[static_cast<size_t>(write.sequence.value)] = from;
    to_[static_cast<size_t>(write.sequence.value)] = to;
  }
}

void RecurrentStates::end_step(bool is_prompt) {
  using policy::StepEnd;
  for (const KvWrite& write : writes_) {
    const StepEnd what = !is_prompt || write.is_decode ? StepEnd::nothing
                         : write.ends_message          ? StepEnd::message_end
                                                       : StepEnd::chunk_end;
    points_.end_step(write.sequence, write.end, what);
  }
  writes_.clear();
}

void RecurrentStates::drop_step() {
  for (const KvWrite& write : writes_) points_.drop_step(write.sequence);
  writes_.clear();
}

int RecurrentStates::take(SequenceId whose_updates, const Way& way, const Replay& replay) {
  if (way.n_updates > 0) {
    replay({.sequence = whose_updates.value,
            .begin = way.reached - way.n_updates,
            .end = way.reached,
            .from = way.places.from,
            .to = way.places.to});
  }
  return way.reached;
}

int RecurrentStates::go_back(SequenceId sequence, int n_tokens, const Replay& replay) {
  return any() ? take(sequence, points_.go_back(sequence, n_tokens), replay) : n_tokens;
}

int RecurrentStates::fork(SequenceId from, SequenceId to, int n_tokens, const Replay& replay) {
  return any() ? take(from, points_.fork(from, to, n_tokens), replay) : n_tokens;
}

std::span<std::byte> RecurrentStates::newest(SequenceId sequence, int layer) const {
  if (state_bytes(layer) == 0) return {};
  const auto at = static_cast<size_t>(layer);
  const int32_t state = points_.newest(sequence);
  CHECK(state >= 0);
  auto* const values = layers_[at].data + state * layers_[at].stride;
  return {reinterpret_cast<std::byte*>(values), state_bytes(layer)};
}

void RecurrentStates::replace(SequenceId sequence, int n_tokens) {
  if (any()) points_.replace(sequence, n_tokens);
}

int RecurrentStates::kept_tokens(SequenceId sequence, int n_tokens) const {
  return any() ? points_.kept_tokens(sequence, n_tokens) : n_tokens;
}

}  // namespace sluice::engine
