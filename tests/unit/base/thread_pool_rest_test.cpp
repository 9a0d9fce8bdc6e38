// When the pool's threads sleep: not between loops that follow closely, and soon after the last.
// What is counted is how often the system put them to sleep (/proc), not time; bench_threads prints
// times.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "base/thread_pool.h"

namespace sluice {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kPatience = std::chrono::seconds(60);    // against hangs
constexpr auto kPause = std::chrono::microseconds(20);  // between loops that follow closely

struct Rest {
  int64_t n_sleeps = 0;    // times that a thread gave up its CPU to wait
  int64_t n_switches = 0;  // and all times that it lost it
  bool all_asleep = true;
  friend bool operator==(const Rest&, const Rest&) = default;
};

std::set<std::string> all_threads() {
  std::thread([] {}).join();  // with the first one, TSan begins a thread of its own
  std::set<std::string> ids;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    ids.insert(task.path().filename());
  }
  return ids;
}

// The caller, and what a sanitizer runs beside it: there before any test made a pool.
const std::set<std::string> kNotOfAPool = all_threads();

// Of the threads of pools.
Rest rest_of_others() {
  Rest rest;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (kNotOfAPool.contains(task.path().filename())) continue;
    std::ifstream status(task.path() / "status");
    for (std::string name; status >> name;) {
      int64_t n = 0;
      if (name == "State:") {
        status >> name;
        rest.all_asleep &= name == "S";
      } else if (name == "voluntary_ctxt_switches:" && status >> n) {
        rest.n_sleeps += n;
        rest.n_switches += n;
      } else if (name == "nonvoluntary_ctxt_switches:" && status >> n) {
        rest.n_switches += n;
      }
    }
  }
  return rest;
}

// Sleeps of the workers in so many loops, each of which ends only after the worker has come.
int64_t sleeps_in(ThreadPool& pool, int n_loops) {
  const int64_t before = rest_of_others().n_sleeps;
  for (int i = 0; i < n_loops; ++i) {
    const auto pause_end = Clock::now() + kPause;
    while (Clock::now() < pause_end) continue;
    std::atomic<int> n_arrived{0};
    pool.parallel_for(2, 1, [&](int64_t, int64_t, int) {
      ++n_arrived;
      while (n_arrived < 2) std::this_thread::yield();
    });
  }
  return rest_of_others().n_sleeps - before;
}

// A pool whose worker sleeps between all loops has to wake it for each. One that keeps it awake has
// to where the caller lost its CPU in between, so on a busy machine one good stretch is enough.
TEST(ThreadPoolRest, AWorkerStaysAwakeWhileLoopsFollowClosely) {
  constexpr int kLoops = 200;
  ThreadPool pool(2);
  int64_t least = kLoops;
  const auto deadline = Clock::now() + kPatience;
  while (least >= kLoops / 2 && Clock::now() < deadline) {
    least = std::min(least, sleeps_in(pool, kLoops));
  }
  std::printf("%lld sleeps in %d loops\n", static_cast<long long>(least), kLoops);
  EXPECT_LT(least, kLoops / 2) << "sleeps in " << kLoops << " loops";
}

TEST(ThreadPoolRest, AnIdlePoolSleepsAndStaysAsleep) {
  ThreadPool pool(4);
  pool.parallel_for(100, 1, [](int64_t, int64_t, int) {});
  const auto deadline = Clock::now() + kPatience;
  bool is_idle = false;
  while (!is_idle && Clock::now() < deadline) {
    const Rest before = rest_of_others();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    is_idle = before.all_asleep && rest_of_others() == before;
  }
  EXPECT_TRUE(is_idle) << "its threads never slept through a tenth of a second";
}

}  // namespace
}  // namespace sluice
