// See thread_pool.h.
// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "base/check.h"
#include "base/error.h"

namespace sluice {
namespace {

// The cores this process may run on: a container or taskset may grant fewer than the machine has.
int n_usable_cores() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(1, CPU_COUNT(&set));
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace

ThreadPool::ThreadPool(int n_threads) {
  CHECK(n_threads >= 0);
  if (n_threads == 0) n_threads = n_usable_cores();
  workers_.reserve(static_cast<size_t>(n_threads) - 1);
  try {
    for (int thread = 1; thread < n_threads; ++thread) {
      workers_.emplace_back([this, thread] { work(thread); });
    }
  } catch (const std::system_error& error) {
    const size_t n_started = workers_.size();
    stop();
    throw Error(Errc::out_of_memory,
                cat("only ", n_started + 1, " of ", n_threads, " threads can be had (",
                    error.what(), "); ask for fewer (-t)"));
  }
}

ThreadPool::~ThreadPool() { stop(); }

void ThreadPool::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  start_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const Job& job) {
  CHECK(job.grain > 0);
  if (job.n <= 0) return;
  const std::lock_guard turn(turn_);
  if (workers_.empty() || job.n <= job.grain) {
    for (int64_t begin = 0; begin < job.n; begin += job.grain) {
      job.call(job.context, begin, std::min(begin + job.grain, job.n), 0);
    }
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    job_ = job;
    next_.store(0, std::memory_order_relaxed);
    n_busy_ = static_cast<int>(workers_.size());
    ++generation_;
  }
  start_.notify_all();
  take_pieces(0);
  std::unique_lock lock(mutex_);
  done_.wait(lock, [this] { return n_busy_ == 0; });
}

void ThreadPool::work(int thread) {
  uint64_t seen = 0;
  for (;;) {
    {
      std::unique_lock lock(mutex_);
      start_.wait(lock, [&] { return stopping_ || generation_ != seen; });
      if (stopping_) return;
      seen = generation_;
    }
    take_pieces(thread);
    const std::lock_guard lock(mutex_);
    if (--n_busy_ == 0) done_.notify_one();
  }
}

void ThreadPool::take_pieces(int thread) {
  for (;;) {
    const int64_t begin = next_.fetch_add(job_.grain, std::memory_order_relaxed);
    if (begin >= job_.n) return;
    job_.call(job_.context, begin, std::min(begin + job_.grain, job_.n), thread);
  }
}

}  // namespace sluice
