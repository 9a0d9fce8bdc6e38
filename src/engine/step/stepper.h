// Takes steps of a model on one backend that holds all of it. Knows tokens and positions, not
// texts; session.cpp builds on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "backend/ops.h"
#include "base/ids.h"
#include "base/wall_clock.h"
#include "engine/step/activations.h"
#include "engine/step/forced_routes.h"
#include "engine/step/kv_cache.h"
#include "engine/step/recurrent_states.h"
#include "engine/step/resident_experts.h"
#include "engine/step/step_driver.h"
#include "engine/step/text_memory.h"
#include "model/model.h"

namespace sluice::engine {

// Model::forward of the layers from `first` up to `last`, with word after each of them.
void forward_layers(const model::Model& model, model::Step& step, int first, int last,
                    const OnLayer& on_layer);

// Hands over what each of these rows of a step wants: all its logits, the best of them, or both.
void tell_rows(const StepRows& rows, std::span<const int32_t> wanted, backend::ConstRowsView logits,
               const backend::PickedRow* picks, const StepListener& listener);

class Stepper final : public StepDriver {
 public:
  // The model must outlive it; `ops` is its own. max_rows: the widest step. `reroute` may be empty.
  Stepper(const model::Model& model, std::unique_ptr<backend::Ops> ops, const KvOptions& kv,
          int max_rows, RouteOverride reroute = {});

  void step(std::span<const StepRow> rows, policy::Phase phase,
            const StepListener& listener) override;
  void truncate(SequenceId sequence, int n_tokens) override;
  bool keeps_points() const override { return states_.any(); }
  int kept_tokens(SequenceId sequence, int n_tokens) const override {
    return states_.kept_tokens(sequence, n_tokens);
  }
  void fork(SequenceId from, SequenceId to, int n_tokens) override;
  TextMemory text_memory() override;
  int n_tokens(SequenceId sequence) const override { return rows_.n_tokens(sequence); }
  int max_rows() const override { return activations_.max_rows(); }
  uint64_t kv_bytes() const override { return kv_.n_bytes(); }
  WentBack went_back() const override { return went_back_; }
  KvPages kv_pages() const override { return kv_.pages(); }
  uint64_t state_bytes() const { return states_.n_bytes(); }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return wall_seconds(); }
  StepSize size() const { return rows_.size(); }  // of the last step

 private:
  void replay(const backend::StateReplay& replay);
  // Of the rows that want them, some at a time.
  void give_logits(model::Step& step, const StepListener& listener);

  const model::Model& model_;
  std::unique_ptr<backend::Ops> ops_;
  KvCache kv_;
  KvCache* const caches_[1] = {&kv_};
  RecurrentStates states_;
  WentBack went_back_;
  ActivationsBuffer activations_;
  ForcedRoutes forced_;
  RoutingLog log_;
  ResidentExperts resident_;
  WatchedExperts experts_;
  StepRows rows_;
  std::vector<backend::PickedRow> picks_;
};

}  // namespace sluice::engine
