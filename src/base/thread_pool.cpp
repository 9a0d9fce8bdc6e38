// See thread_pool.h.
//
// A loop is over when its pieces are done, not when every thread has looked at it: a worker that
// the system has suspended delays the loop only while it holds a piece. So a worker may come late,
// when the next loop has begun, and that is harmless: what makes a piece its own is the count it
// took from a share, and while it holds one, the loop it belongs to cannot end and job_ cannot
// change.
// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <algorithm>
#include <limits>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/cpu_topology.h"
#include "base/error.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;

// How long a waiting thread looks without letting others run in between.
constexpr auto kGreedy = std::chrono::microseconds(10);
constexpr int kPausesPerLook = 32;  // at the clock: about a microsecond

void pause_briefly() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

// Waits until is_over(word): spinning, then giving way to others, then (when it was awake for so
// long) asleep until notified.
template <typename Word, typename IsOver>
void wait_until(const std::atomic<Word>& word, Clock::duration awake, IsOver is_over) {
  Clock::time_point start{};
  for (;;) {
    Word value{};
    for (int i = 0; i < kPausesPerLook; ++i) {
      value = word.load(std::memory_order_acquire);
      if (is_over(value)) return;
      pause_briefly();
    }
    const Clock::time_point now = Clock::now();
    if (start == Clock::time_point{}) start = now;
    if (now - start > awake) {
      word.wait(value, std::memory_order_acquire);
    } else if (now - start > kGreedy) {
      std::this_thread::yield();
    }
  }
}

// The numeric contract needs denormal numbers and rounding to nearest. A new thread inherits the
// mode of its maker, and a program that links us may have set another one.
class IeeeMode {
 public:
  IeeeMode() : before_(get()) {
    if (is_other()) set(kIeee);
  }
  ~IeeeMode() {
    if (is_other()) set(before_);
  }
  IeeeMode(const IeeeMode&) = delete;
  IeeeMode& operator=(const IeeeMode&) = delete;

 private:
#if defined(__x86_64__)
  using Word = unsigned;
  static constexpr Word kIeee = 0x1F80;
  static constexpr Word kFlags = 0x3F;  // say what has happened, not what to do
  static Word get() { return __builtin_ia32_stmxcsr(); }
  static void set(Word word) { __builtin_ia32_ldmxcsr(word); }
#elif defined(__aarch64__)
  using Word = uint64_t;
  static constexpr Word kIeee = 0;
  static constexpr Word kFlags = 0;
  static Word get() {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word));
    return word;
  }
  static void set(Word word) { asm volatile("msr fpcr, %0" : : "r"(word)); }
#endif

  bool is_other() const { return (before_ & ~kFlags) != kIeee; }

  Word before_;
};

// The pool whose body this thread is in.
thread_local const ThreadPool* inside = nullptr;

}  // namespace

int32_t ThreadPool::Job::n_pieces() const {
  const int64_t n_pieces = (n - 1) / grain + 1;
  CHECK(n_pieces <= std::numeric_limits<int32_t>::max());
  return static_cast<int32_t>(n_pieces);
}

ThreadPool::ThreadPool(int n_threads, std::chrono::microseconds awake) : awake_(awake) {
  CHECK(n_threads >= 0);
  std::vector<std::vector<int>> homes;  // the CPUs that each thread keeps to
  if (n_threads != 1) {
    const CpuTopology topology = this_machines_cpus();
    if (n_threads == 0) n_threads = topology.default_threads();
    homes = topology.homes(n_threads);
  }
  shares_ = std::vector<Share>(static_cast<size_t>(n_threads));
  workers_.reserve(shares_.size() - 1);
  try {
    for (int thread = 1; thread < n_threads; ++thread) {
      workers_.emplace_back([this, thread, home = homes[static_cast<size_t>(thread)]] {
        keep_this_thread_to(home);
        work(thread);
      });
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
  stopping_.store(true, std::memory_order_relaxed);  // seen by whoever sees the new generation
  generation_.fetch_add(1);
  generation_.notify_all();
  for (std::thread& worker : workers_) worker.join();
}

void ThreadPool::run(const Job& job) {
  CHECK(job.grain > 0);
  CHECK(inside != this);  // it would wait for itself
  if (job.n <= 0) return;
  const std::lock_guard turn(turn_);
  const IeeeMode mode;
  // The last loop's pieces are all done, so nobody reads job_ and n_pieces_.
  job_ = job;
  n_pieces_ = job.n_pieces();
  if (workers_.empty() || n_pieces_ == 1) {
    const ThreadPool* const outer = std::exchange(inside, this);
    for (int32_t piece = 0; piece < n_pieces_; ++piece) run_piece(piece, 0);
    inside = outer;
    throw_failure();
    return;
  }
  n_unfinished_.store(n_pieces_, std::memory_order_relaxed);
  // From the first of these stores on, a worker still looking around may take pieces; the order
  // `release` shows it all that was written above.
  for (int share = 0; share < n_threads(); ++share) {
    const int32_t n_left = share_begin(share + 1) - share_begin(share);
    shares_[static_cast<size_t>(share)].n_left.store(n_left, std::memory_order_release);
  }
  // Sequentially consistent, as notify needs it: either it sees a sleeper, or that one the change.
  generation_.fetch_add(1);
  generation_.notify_all();
  take_pieces(0);
  wait_until(n_unfinished_, awake_, [](int32_t n) { return n == 0; });
  throw_failure();
}

// A worker that let it pass would end the program, and the caller would wait for its piece forever.
void ThreadPool::run_piece(int64_t piece, int thread) noexcept {
  const int64_t begin = piece * job_.grain;
  try {
    job_.call(job_.context, begin, begin + std::min(job_.grain, job_.n - begin), thread);
  } catch (...) {
    const std::lock_guard lock(failing_);
    if (!failure_) failure_ = std::current_exception();
  }
}

// After the last piece: what the bodies left is visible, and nobody writes to it.
void ThreadPool::throw_failure() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void ThreadPool::work(int thread) {
  const IeeeMode mode;
  uint32_t seen = 0;
  for (;;) {
    wait_until(generation_, awake_,
               [&](uint32_t generation) { return std::exchange(seen, generation) != generation; });
    if (stopping_.load(std::memory_order_relaxed)) return;
    take_pieces(thread);
  }
}

void ThreadPool::take_pieces(int thread) {
  const ThreadPool* const outer = std::exchange(inside, this);
  int32_t n_done = 0;
  for (int i = 0; i < n_threads(); ++i) {
    const int share = (thread + i) % n_threads();
    std::atomic<int32_t>& n_left = shares_[static_cast<size_t>(share)].n_left;
    // Looking first leaves an empty share's line where it is.
    while (n_left.load(std::memory_order_relaxed) > 0) {
      const int32_t n_left_before = n_left.fetch_sub(1, std::memory_order_acquire);
      if (n_left_before <= 0) break;
      run_piece(share_begin(share + 1) - n_left_before, thread);
      ++n_done;
    }
  }
  inside = outer;
  if (n_done == 0) return;
  // Shows the caller what the bodies wrote; sequentially consistent for the same reason as above.
  if (n_unfinished_.fetch_sub(n_done) == n_done) n_unfinished_.notify_one();
}

// The first piece of a share; that of the share after the last is n_pieces_.
int32_t ThreadPool::share_begin(int share) const {
  const int32_t least = n_pieces_ / n_threads();
  return least * share + std::min(share, n_pieces_ % n_threads());
}

}  // namespace sluice
