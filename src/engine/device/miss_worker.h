// The host's side of the mailbox: a thread that computes what the device does not hold, from the
// experts in the host's memory, on the host's threads. It looks for requests without rest while a
// step is under way, and sleeps otherwise. A request that is not answered in time is given up: the
// device's wait ends, and the step fails with the layer's name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "backend/cpu/experts.h"
#include "backend/mailbox.h"
#include "base/thread_pool.h"
#include "model/model.h"

namespace sluice::engine {

struct MissWorkerOptions {
  std::chrono::milliseconds deadline{10'000};  // from a request to its answer

  // The clock that the deadline is measured by. Tests give one that stands still.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;

  // Tests inject faults here: called before a request is computed; while it blocks, or if it
  // throws, the request stays unanswered.
  std::function<void(const backend::Mailbox::Request&)> before_answer;
};

class MissWorker {
 public:
  // All outlive it.
  MissWorker(const model::Model& model, ThreadPool& threads, backend::Mailbox& mailbox,
             MissWorkerOptions options = {});
  ~MissWorker();

  // Around each step. end_step() returns what went wrong with the worker (empty: nothing), when the
  // step's work is done. After a step that failed no request of it stays in the mailbox, and nobody
  // reads one any more. Where the worker never lets go of one, later steps fail at begin_step(),
  // with Errc::device, until it does.
  void begin_step();
  std::string end_step();

  // The step has failed: ends the device's waits, so that its work can end.
  void abort_step();

  int64_t n_answered() const { return n_answered_; }  // pairs

 private:
  enum State : int { resting, in_step, stopping };

  void work();
  void watch();
  void answer(const backend::Mailbox::Request& request);
  bool is_in_step() const { return state_ == in_step; }
  void enter(State state);
  bool wait_for_step() const;  // false: there will be none
  std::optional<backend::Mailbox::Request> take_request();
  bool close_mailbox(std::unique_lock<std::mutex>& lock, std::chrono::milliseconds patience);
  void let_go(const std::string& fault);

  const model::Model& model_;
  backend::Mailbox& mailbox_;
  MissWorkerOptions options_;
  backend::cpu::Experts experts_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // What both threads sleep by. Not a condition variable, whose notify_all() may wait for a thread
  // that was woken before and stands still since: then no deadline would end the step.
  std::atomic<int> state_ = resting;
  bool is_busy_ = false;  // with a request
  std::string fault_;     // of the worker's, or what was waited for too long
  std::atomic<int64_t> n_answered_ = 0;
  std::thread worker_, watchdog_;  // last: they use all of the above
};

}  // namespace sluice::engine
