// How soon a worker of the thread pool joins a loop, while loops follow one another closely, and
// what a pool without work costs. docs/decisions/0006-threads.md has figures that it printed.
//
//   bench_threads
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <thread>
#include <vector>

#include "base/thread_pool.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

double process_cpu_ms() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_nsec) * 1e-6;
}

// From the call of a loop of two pieces until both threads have met in it and parted.
double meeting_us(ThreadPool& pool) {
  const auto start = Clock::now();
  std::atomic<int> n_arrived{0};
  pool.parallel_for(2, 1, [&](int64_t, int64_t, int) {
    ++n_arrived;
    while (n_arrived < 2) continue;
  });
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

void print_meetings(microseconds pause) {
  constexpr size_t kMeetings = 2000;
  ThreadPool pool(2);
  std::vector<double> us(kMeetings);
  for (double& time : us) {
    const auto pause_end = Clock::now() + pause;
    while (Clock::now() < pause_end) continue;
    time = meeting_us(pool);
  }
  std::ranges::sort(us);
  std::printf(
      "%8lld us between loops: two threads meet and part in %.2f us (median; 1 %% %.2f, "
      "99 %% %.2f)\n",
      static_cast<long long>(pause.count()), us[kMeetings / 2], us[kMeetings / 100],
      us[kMeetings * 99 / 100]);
}

void print_idle() {
  constexpr int kThreads = 4, kMilliseconds = 500;
  ThreadPool pool(kThreads);
  pool.parallel_for(100, 1, [](int64_t, int64_t, int) {});
  const double before = process_cpu_ms();
  std::this_thread::sleep_for(std::chrono::milliseconds(kMilliseconds));
  std::printf("%d idle threads used %.2f ms in %d ms\n", kThreads, process_cpu_ms() - before,
              kMilliseconds);
}

}  // namespace
}  // namespace sluice

int main() {
  for (const int us : {0, 20, 200, 2000}) sluice::print_meetings(std::chrono::microseconds(us));
  sluice::print_idle();
}
