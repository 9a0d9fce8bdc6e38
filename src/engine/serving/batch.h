// Takes the steps of many requests on one driver: who waits, who runs, and what happens where KV
// pages run out. One thread; engine.cpp puts a queue before it. Who gets rows in a step is decided
// by policy/batch.
//
// A request that finds no page makes room for itself: kept texts lose their ends, then the youngest
// running request is paused. It waits at the head of the queue, and what it lost is computed again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "engine/model_stamp.h"
#include "engine/serving/live_request.h"
#include "engine/serving/text_slots.h"
#include "policy/batch/share_rows.h"

namespace sluice::engine {

struct BatchOptions {
  int n_sequences = 1;  // that run at a time
  int n_kept = 0;       // texts kept besides
  int n_ctx = 0;
  std::string origin;  // names the model in errors
  ModelStamp model;    // names it in files of texts
};

class Batch {
 public:
  // shared: whoever may cancel the request holds it too.
  using Live = std::shared_ptr<LiveRequest>;

  // The driver outlives it, has n_sequences + n_kept sequences and pages for one whole context.
  Batch(StepDriver& driver, const BatchOptions& options);

  void add(Live request) { waiting_.push_back(std::move(request)); }
  bool is_idle() const { return waiting_.empty() && running_.empty(); }
  // Ends what was cancelled or is overdue, lets those in for whom there is room, and takes a step
  // if anybody runs. Requests hear of all that by their callbacks; nothing is thrown.
  void step();

  // Numbers of those that have ended since the last call.
  std::vector<uint64_t> take_ended() { return std::exchange(ended_, {}); }
  const EngineStats& stats() const { return stats_; }

 private:
  void end_interrupted();
  void end(LiveRequest& request, StopReason reason);
  StopReason save(LiveRequest& request, StopReason reason);
  void admit();
  bool restore(LiveRequest& request);
  bool has_room(const LiveRequest& request);
  int n_pages_of(const LiveRequest& request) const;
  int n_promised() const;
  void share_prefixes();
  std::vector<policy::BatchText> texts() const;
  bool must_wait(const LiveRequest& request) const;
  bool make_room();
  void pause_youngest();
  void build_rows(const std::vector<policy::RowShare>& shares);
  bool compute(const std::vector<policy::RowShare>& shares);
  void fail(const std::vector<policy::RowShare>& shares, const Error& error);
  void after_step(const std::vector<policy::RowShare>& shares);
  void count_step(double seconds);
  void update_gauges();

  StepDriver& driver_;
  BatchOptions options_;
  TextSlots slots_;
  std::deque<Live> waiting_;   // the first is next
  std::vector<Live> running_;  // by age
  std::vector<StepRow> rows_;
  std::vector<LiveRequest*> owners_;  // by row
  int n_decode_rows_ = 0;
  std::vector<uint64_t> ended_;
  EngineStats stats_;
};

}  // namespace sluice::engine
