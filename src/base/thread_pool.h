// A fixed set of threads that share out the pieces of one loop at a time. Which thread takes which
// piece is left to chance, so a body must compute each index the same way whoever runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <type_traits>
#include <vector>

namespace sluice {

class ThreadPool {
 public:
  // n_threads counts the caller of parallel_for, which works too; 0 means one per usable core.
  // Throws Errc::out_of_memory where the system grants fewer.
  explicit ThreadPool(int n_threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int n_threads() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls body(begin, end, thread) until all of [0, n) is covered by pieces of at most `grain`;
  // returns when all are done. `thread` is below n_threads() and no two calls at the same time
  // share it. The body must not throw. Calls from several threads take turns.
  template <typename Body>
  void parallel_for(int64_t n, int64_t grain, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run({n, grain, &body, [](void* context, int64_t begin, int64_t end, int thread) {
           (*static_cast<Plain*>(context))(begin, end, thread);
         }});
  }

 private:
  struct Job {
    int64_t n = 0;
    int64_t grain = 1;
    void* context = nullptr;
    void (*call)(void*, int64_t, int64_t, int) = nullptr;
  };

  void stop();
  void run(const Job& job);
  void work(int thread);
  void take_pieces(int thread);

  std::vector<std::thread> workers_;
  std::mutex turn_;  // held by the caller whose loop is running
  std::mutex mutex_;
  std::condition_variable start_;
  std::condition_variable done_;
  Job job_;
  std::atomic<int64_t> next_{0};
  uint64_t generation_ = 0;
  int n_busy_ = 0;
  bool stopping_ = false;
};

}  // namespace sluice
