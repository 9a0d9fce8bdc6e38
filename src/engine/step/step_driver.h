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
#include "sluice/engine.h"

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

// Tokens by which texts with recurrent layers got back to a position, in all: by the updates that
// they had left, and by computing them again.
struct WentBack {
  int64_t n_replayed = 0;
  int64_t n_computed = 0;
};

struct TextMemory;  // text_memory.h

class StepDriver {
 public:
  virtual ~StepDriver() = default;

  // Appends each row's token to its sequence and hands over the logits of the rows that want them,
  // all or the best, in order. The phase is what the policy learns from the step; it changes no
  // number. The caller has made sure that the tokens exist and the context has room. Where it
  // throws, the sequences are as they were before.
  virtual void step(std::span<const StepRow> rows, policy::Phase phase,
                    const StepListener& listener) = 0;

  // Where a model's layers are recurrent, tokens behind kept_tokens() are computed again; where
  // that throws, the sequence ends before them.
  virtual void truncate(SequenceId sequence, int n_tokens) = 0;
  // Whether it keeps points to go back to, behind the steps of prompts.
  virtual bool keeps_points() const { return false; }
  // Of the sequence's first n_tokens, how many it can go back to without computing any.
  virtual int kept_tokens(SequenceId sequence, int n_tokens) const {
    (void)sequence;
    return n_tokens;
  }
  virtual WentBack went_back() const { return {}; }
  // `to` forgets what it held and becomes the first n_tokens of `from`, whose KV pages it shares.
  virtual void fork(SequenceId from, SequenceId to, int n_tokens) = 0;
  // What it remembers of its sequences, to be written out and read back (text_data.h) between
  // steps.
  virtual TextMemory text_memory();
  virtual int n_tokens(SequenceId sequence) const = 0;
  virtual int max_rows() const = 0;
  virtual uint64_t kv_bytes() const = 0;
  virtual const RoutingLog& log() const = 0;  // of the last step
  virtual double seconds() const = 0;         // on the clock that its steps go by

  // Of the pool that all sequences share.
  virtual KvPages kv_pages() const { return {}; }
  // Where each expert is, by layer and expert; left as it is where all are in RAM.
  virtual void find_experts(std::span<ExpertMap::Where> where) const { (void)where; }

  // Empty where all is computed by the CPU alone.
  virtual PlacementInfo placement() { return {}; }
  virtual ExpertStats stats() const { return {}; }
};

}  // namespace sluice::engine
