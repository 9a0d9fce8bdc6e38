// Whoever takes steps of a model, wherever it is computed: rows of one or several sequences in,
// logits out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/step/forced_routes.h"
#include "engine/step/routing_log.h"
#include "engine/step/step_rows.h"
#include "sluice/device.h"
#include "sluice/expert_stats.h"

namespace sluice::engine {

// Gets a row's index and its n_vocab logits, valid during the call.
using OnRowLogits = std::function<void(int64_t row, std::span<const float> logits)>;

// Gets a row's index and its best logits, valid during the call.
using OnRowPick = std::function<void(int64_t row, const backend::PickedRow& picked)>;

// Hears how many of the model's layers a step has been through; the last time, all of them.
using OnLayer = std::function<void(int n_done, int n_layers)>;

// Who hears of a step while it runs; each may be empty where nobody wants to.
struct StepListener {
  OnRowLogits on_logits = {};
  OnLayer on_layer = {};
  OnRowPick on_pick = {};
};

class StepDriver {
 public:
  virtual ~StepDriver() = default;

  // Appends each row's token to its sequence and hands over the logits of the rows that want them,
  // all or the best, in order. The phase is what the policy learns from the step; it changes no
  // number. The caller has made sure that the tokens exist and the context has room. Where it
  // throws, the sequences are as they were before.
  virtual void step(std::span<const StepRow> rows, policy::Phase phase,
                    const StepListener& listener) = 0;

  virtual void truncate(SequenceId sequence, int n_tokens) = 0;
  // `to` forgets what it held and becomes the first n_tokens of `from`, whose KV pages it shares.
  virtual void fork(SequenceId from, SequenceId to, int n_tokens) = 0;
  virtual int n_tokens(SequenceId sequence) const = 0;
  virtual int max_rows() const = 0;
  virtual uint64_t kv_bytes() const = 0;
  virtual const RoutingLog& log() const = 0;  // of the last step
  virtual double seconds() const = 0;         // on the clock that its steps go by

  // Empty where all is computed by the CPU alone.
  virtual PlacementInfo placement() { return {}; }
  virtual ExpertStats stats() const { return {}; }
};

}  // namespace sluice::engine
