// The server's log: lines go into a bounded queue, and a thread of its own hands them on. Whoever
// logs never waits, even where nobody reads what is written.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace sluice::server {

class LogQueue {
 public:
  // May block. It is called by one thread alone, and perhaps after the queue is gone, so it owns
  // what it uses. SIGPIPE is blocked in that thread: a reader who has left ends nothing.
  using Sink = std::function<void(const std::string& line)>;

  // n_lines: that may wait; one more, and the oldest is dropped.
  explicit LogQueue(Sink sink, size_t n_lines = 1024);
  // Gives the sink a second for what waits; a sink that still blocks is left to itself.
  ~LogQueue();
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // From any thread. Where lines were dropped, a line with their number stands in their place.
  void push(std::string line);

 private:
  struct State;
  static void run(State& state);

  std::shared_ptr<State> state_;  // shared with the thread, which may outlive the queue
  std::thread thread_;
};

}  // namespace sluice::server
