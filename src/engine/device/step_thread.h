// A thread of the host that works beside the device's part of a step, from its begin to its end.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

namespace sluice::engine {

class StepThread {
 public:
  // `work`: what it does in a step; does not throw, and comes to its end once is_over().
  explicit StepThread(std::function<void()> work);
  ~StepThread();
  StepThread(const StepThread&) = delete;
  StepThread& operator=(const StepThread&) = delete;

  // What was written before begin() the thread sees, and after end() the caller what the thread
  // wrote. A step that was not begun may be ended.
  void begin();
  void end();

  // The device's work is done: nothing more will be told.
  bool is_over() const { return is_over_; }

 private:
  void run();

  std::function<void()> work_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool in_step_ = false, stopping_ = false;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace sluice::engine
