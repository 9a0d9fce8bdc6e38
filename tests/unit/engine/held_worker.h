// What makes tests of threads independent of time: a worker that stands still until it is let go,
// and a clock that moves only when it is told to.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>

namespace sluice::engine::test {

class HeldWorker {
 public:
  ~HeldWorker() { release(); }

  // By the worker: stands still until it is let go; from then on passes at once.
  void stand() {
    stands_ = true;
    while (!released_) std::this_thread::yield();
  }
  void wait_until_it_stands() const {
    while (!stands_) std::this_thread::yield();
  }
  void release() { released_ = true; }

 private:
  std::atomic<bool> stands_ = false, released_ = false;
};

class StandingClock {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  std::function<TimePoint()> now() {
    return [this] {
      ++n_looks_;
      return TimePoint(std::chrono::milliseconds(ms_));
    };
  }
  void advance(std::chrono::milliseconds by) { ms_ += by.count(); }

  // Until whoever goes by this clock has looked at it twice more: the first look may have begun
  // before, the second has seen all that there was at this call. Gives up after a minute: then
  // nobody looks any more, and the test has failed.
  void wait_until_seen() const {
    const int64_t enough = n_looks_ + 2;
    const auto start = std::chrono::steady_clock::now();
    while (n_looks_ < enough &&
           std::chrono::steady_clock::now() - start < std::chrono::minutes(1)) {
      std::this_thread::yield();
    }
  }

 private:
  std::atomic<int64_t> ms_ = 0, n_looks_ = 0;
};

}  // namespace sluice::engine::test
