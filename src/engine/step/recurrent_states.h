// The recurrent states of all sequences, as values: the memory of the places that
// policy::StatePoints deals out, and of the updates by which texts go back. States of all layers of
// one point stand together, and so do the updates of one token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "engine/step/kv_cache.h"
#include "model/model.h"
#include "policy/cache/state_points.h"

namespace sluice::engine {

class RecurrentStates {
 public:
  // Whose memory the states of the layers from `first` up to `last` are.
  struct Part {
    backend::Allocate memory;
    int first = 0, last = 0;
  };
  // Without memory where the model has no recurrent layers: then every point can be reached.
  RecurrentStates(std::span<const Part> parts, const model::Model& model, int n_sequences);
  RecurrentStates(const backend::Allocate& memory, const model::Model& model, int n_sequences);

  bool any() const { return !layers_.empty(); }
  std::span<const backend::StateLayerView> layers() const { return layers_; }
  uint64_t n_bytes() const;
  // Of the step under way, by sequence, as the views have them.
  std::span<const int32_t> from() const { return from_; }
  std::span<const int32_t> to() const { return to_; }

  // Gives each sequence that a step writes to a place for the state behind it.
  void begin_step(std::span<const KvWrite> writes);
  // The new states are those of the sequences; in a step of a prompt as points to come back to. Or
  // they are not.
  void end_step(bool is_prompt);
  void drop_step();

  // Makes a state of all layers by updates.
  using Replay = std::function<void(const backend::StateReplay&)>;
  // A text is made shorter, or another made of its beginning: n_tokens, or where neither a point
  // nor updates lead there, what is returned.
  int go_back(SequenceId sequence, int n_tokens, const Replay& replay);
  int fork(SequenceId from, SequenceId to, int n_tokens, const Replay& replay);
  // The values of a sequence's newest state in a layer, in the layer's memory; none in a layer that
  // is not recurrent.
  std::span<std::byte> newest(SequenceId sequence, int layer) const;
  uint64_t state_bytes(int layer) const {  // of one state
    return any() ? static_cast<uint64_t>(n_values_[static_cast<size_t>(layer)]) * sizeof(float) : 0;
  }
  // A text of n_tokens takes the sequence's place; its state is to be written to newest().
  void replace(SequenceId sequence, int n_tokens);
  // What they would return.
  int kept_tokens(SequenceId sequence, int n_tokens) const;

 private:
  using Way = policy::StatePoints::Way;
  void lay_out(const Part& part, const model::Model& model);
  static int take(SequenceId whose_updates, const Way& way, const Replay& replay);

  policy::StatePoints points_;
  std::vector<backend::Buffer> memory_;  // of each part
  std::vector<backend::StateLayerView> layers_;
  std::vector<int64_t> n_values_;  // of one state, by layer
  std::vector<int32_t> from_, to_;
  std::vector<KvWrite> writes_;  // of the step under way
};

}  // namespace sluice::engine
