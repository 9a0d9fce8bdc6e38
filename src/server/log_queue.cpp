// See log_queue.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/log_queue.h"

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <deque>
#include <mutex>
#include <utility>

#include "base/error.h"

namespace sluice::server {

struct LogQueue::State {
  Sink sink;
  size_t n_lines = 0;

  std::mutex mutex;  // for what follows; never held while the sink works
  std::condition_variable changed;
  std::deque<std::string> lines;
  uint64_t n_dropped = 0;  // right before the first of `lines`
  bool ends = false;       // asked to
  bool has_ended = false;
};

LogQueue::LogQueue(Sink sink, size_t n_lines) : state_(std::make_shared<State>()) {
  state_->sink = std::move(sink);
  state_->n_lines = n_lines;
  thread_ = std::thread([state = state_] { run(*state); });
}

LogQueue::~LogQueue() {
  bool has_ended = false;
  {
    std::unique_lock lock(state_->mutex);
    state_->ends = true;
    state_->changed.notify_all();
    has_ended = state_->changed.wait_for(lock, std::chrono::seconds(1),
                                         [this] { return state_->has_ended; });
  }
  if (has_ended) {
    thread_.join();
  } else {
    thread_.detach();
  }
}

void LogQueue::push(std::string line) {
  const std::scoped_lock lock(state_->mutex);
  if (state_->lines.size() == state_->n_lines) {
    state_->lines.pop_front();
    ++state_->n_dropped;
  }
  state_->lines.push_back(std::move(line));
  state_->changed.notify_all();
}

void LogQueue::run(State& state) {
  sigset_t pipe;
  sigemptyset(&pipe);
  sigaddset(&pipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &pipe, nullptr);
  std::unique_lock lock(state.mutex);
  while (true) {
    state.changed.wait(lock, [&] { return state.ends || !state.lines.empty(); });
    if (state.lines.empty()) break;
    const uint64_t n_dropped = std::exchange(state.n_dropped, 0);
    const std::string line = std::move(state.lines.front());
    state.lines.pop_front();
    lock.unlock();
    if (n_dropped > 0) {
      state.sink(cat("(", n_dropped, " lines of the log were dropped: nobody read them in time)"));
    }
    state.sink(line);
    lock.lock();
  }
  state.has_ended = true;
  state.changed.notify_all();
}

}  // namespace sluice::server
