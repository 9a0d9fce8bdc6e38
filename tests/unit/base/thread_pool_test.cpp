// ThreadPool: what a loop covers, which thread ids a body sees, and that callers take turns.
// Run under the preset `tsan` too: the visibility of results is checked by writing plain memory.
// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include "base/cpu_topology.h"
#include "base/error.h"

namespace sluice {
namespace {

using Counts = std::vector<std::atomic<int>>;

TEST(ThreadPool, CoversEveryIndexExactlyOnceInPiecesOfAtMostTheGrain) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const int n_threads : {1, 2, 3, 5, 8}) {
    ThreadPool pool(n_threads);
    for (const int64_t n : {1, 2, 3, 7, 31, 32, 33, 64, 1000}) {
      for (const int64_t grain : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{7}, int64_t{32},
                                  int64_t{33}, int64_t{999}, int64_t{1001}, kMost}) {
        Counts counts(static_cast<size_t>(n));
        std::atomic<int> n_wrong_pieces{0};
        pool.parallel_for(n, grain, [&](int64_t begin, int64_t end, int) {
          if (end <= begin || end - begin > grain) ++n_wrong_pieces;
          for (int64_t i = begin; i < end; ++i) ++counts[static_cast<size_t>(i)];
        });
        const std::string what = cat(n_threads, " threads, n ", n, ", grain ", grain);
        for (size_t i = 0; i < counts.size(); ++i) {
          ASSERT_EQ(counts[i], 1) << what << ", index " << i;
        }
        ASSERT_EQ(n_wrong_pieces, 0) << what << ": empty, or longer than the grain";
      }
    }
  }
}

TEST(ThreadPool, NothingToDoCallsNothing) {
  for (const int n_threads : {1, 4}) {
    ThreadPool pool(n_threads);
    for (const int64_t n : {int64_t{0}, int64_t{-1}, std::numeric_limits<int64_t>::min()}) {
      pool.parallel_for(n, 1, [&](int64_t begin, int64_t end, int) {
        ADD_FAILURE() << n_threads << " threads, n " << n << ": [" << begin << ", " << end << ")";
      });
    }
  }
}

TEST(ThreadPool, ThreadIdsAreInRangeAndNeverSharedAtTheSameTime) {
  for (const int n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    Counts inside(static_cast<size_t>(n_threads));
    std::atomic<int> n_shared{0}, n_outside{0};
    for (int round = 0; round < 50; ++round) {
      pool.parallel_for(97, 3, [&](int64_t, int64_t, int thread) {
        if (thread < 0 || thread >= n_threads) {
          ++n_outside;
          return;
        }
        if (inside[static_cast<size_t>(thread)]++ != 0) ++n_shared;
        std::this_thread::yield();
        --inside[static_cast<size_t>(thread)];
      });
    }
    EXPECT_EQ(n_shared, 0) << n_threads << " threads";
    EXPECT_EQ(n_outside, 0) << n_threads << " threads";
  }
}

// Each body waits for all the others, which only works when every thread has one of them.
TEST(ThreadPool, AllThreadsWorkAtTheSameTime) {
  using Clock = std::chrono::steady_clock;
  for (const int n_threads : {1, 2, 3, 8}) {
    ThreadPool pool(n_threads);
    ASSERT_EQ(pool.n_threads(), n_threads);
    Counts calls(static_cast<size_t>(n_threads));
    std::atomic<int> n_arrived{0};
    const auto deadline = Clock::now() + std::chrono::seconds(60);
    pool.parallel_for(n_threads, 1, [&](int64_t, int64_t, int thread) {
      ++calls[static_cast<size_t>(thread)];
      ++n_arrived;
      while (n_arrived < n_threads && Clock::now() < deadline) std::this_thread::yield();
    });
    for (size_t t = 0; t < calls.size(); ++t) {
      EXPECT_EQ(calls[t], 1) << "thread " << t << " of " << n_threads;
    }
  }
}

TEST(ThreadPool, WhatTheBodiesWroteIsThereAfterwards) {
  ThreadPool pool(4);
  std::vector<int64_t> plain(5000);
  for (int64_t round = 0; round < 100; ++round) {
    pool.parallel_for(std::ssize(plain), 64, [&](int64_t begin, int64_t end, int) {
      for (int64_t i = begin; i < end; ++i) plain[static_cast<size_t>(i)] = i * round;
    });
    for (size_t i = 0; i < plain.size(); ++i) {
      ASSERT_EQ(plain[i], static_cast<int64_t>(i) * round) << "round " << round << ", index " << i;
    }
  }
}

TEST(ThreadPool, ManyShortLoopsInARowLoseNoPiece) {
  for (const int n_threads : {2, 3, 5, 16}) {
    ThreadPool pool(n_threads);
    for (int64_t job = 0; job < 3000; ++job) {
      std::atomic<int64_t> sum{0};
      const int64_t n = 2 + job % 7;
      pool.parallel_for(n, 1, [&](int64_t begin, int64_t, int) { sum += begin + 1; });
      ASSERT_EQ(sum, n * (n + 1) / 2) << n_threads << " threads, job " << job << ", n " << n;
    }
  }
}

// While a caller's loop has a body running, no body of another caller's may run.
TEST(ThreadPool, LoopsOfSeveralCallersTakeTurns) {
  constexpr size_t kCallers = 4;
  ThreadPool pool(3);
  Counts inside(kCallers);
  std::atomic<int> n_overlaps{0};
  std::vector<int64_t> sums(kCallers, 0);
  std::vector<std::thread> callers;
  for (size_t c = 0; c < kCallers; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        // 1, 4, 7: also loops too short to be shared out.
        const int64_t n = 1 + 3 * (round % 3);
        std::atomic<int64_t> sum{0};
        pool.parallel_for(n, 1, [&](int64_t begin, int64_t end, int) {
          ++inside[c];
          for (size_t other = 0; other < kCallers; ++other) {
            if (other != c && inside[other] != 0) ++n_overlaps;
          }
          sum += end - begin;
          --inside[c];
        });
        sums[c] += sum;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(n_overlaps, 0);
  for (size_t c = 0; c < kCallers; ++c) EXPECT_EQ(sums[c], 67 + 67 * 4 + 66 * 7) << "caller " << c;
}

TEST(ThreadPool, ZeroThreadsMeansAsManyAsTheMachineIsGoodFor) {
  EXPECT_EQ(ThreadPool(0).n_threads(), this_machines_cpus().default_threads());
}

TEST(ThreadPool, ALoopOfOnePieceAndAPoolOfOneThreadRunInTheCaller) {
  const auto caller = std::this_thread::get_id();
  for (const auto& [n_threads, n] : {std::pair{3, 1}, {3, 5}, {1, 50}}) {
    int64_t n_covered = 0;  // plain: nobody else may touch it
    ThreadPool(n_threads).parallel_for(n, 5, [&](int64_t begin, int64_t end, int thread) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      EXPECT_EQ(thread, 0);
      n_covered += end - begin;
    });
    EXPECT_EQ(n_covered, n) << n_threads << " threads";
  }
}

// Costs that a fixed division would do worst with; every body sleeps, so that this holds on a busy
// machine too.
TEST(ThreadPool, SharesOfSlowPiecesAreHelpedOutWith) {
  using std::chrono::milliseconds;
  constexpr int64_t kPieces = 40;
  const std::pair<const char*, std::function<milliseconds(int64_t)>> costs[] = {
      {"the first share slow", [](int64_t i) { return milliseconds(i < 10 ? 4 : 0); }},
      {"the last share slow", [](int64_t i) { return milliseconds(i >= 30 ? 4 : 0); }},
      {"one very slow", [](int64_t i) { return milliseconds(i == 17 ? 40 : 1); }},
      {"falling", [](int64_t i) { return milliseconds((kPieces - i) / 8); }}};
  ThreadPool pool(4);
  for (const auto& [what, cost] : costs) {
    Counts counts(kPieces);
    std::vector<int> taken_by(kPieces);
    pool.parallel_for(kPieces, 1, [&](int64_t begin, int64_t, int thread) {
      ++counts[static_cast<size_t>(begin)];
      taken_by[static_cast<size_t>(begin)] = thread;
      std::this_thread::sleep_for(cost(begin));
    });
    bool helped = false;
    for (int64_t i = 0; i < kPieces; ++i) {
      EXPECT_EQ(counts[static_cast<size_t>(i)], 1) << what << ", piece " << i;
      helped |= taken_by[static_cast<size_t>(i)] != i / 10;
    }
    EXPECT_TRUE(helped) << what << ": every thread did its own share alone";
  }
}

TEST(ThreadPool, LeavesTheCallersCpusAlone) {
  const auto usable = [] {
    std::vector<int> ids;
    for (const LogicalCpu& cpu : this_machines_cpus().cpus) ids.push_back(cpu.id);
    return ids;
  };
  const std::vector<int> before = usable();
  ThreadPool pool(0);
  pool.parallel_for(100, 1, [](int64_t, int64_t, int) {});
  EXPECT_EQ(usable(), before);
}

#if defined(__x86_64__)
// The caller flushes to zero and rounds up; each body waits for the others, so all threads are
// seen.
TEST(ThreadPool, BodiesComputeInIeeeModeWhateverTheCallersIs) {
  constexpr unsigned kIeee = 0x1F80, kFlags = 0x3F, kOther = 0xDFC0;
  const unsigned before = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(kOther);
  ThreadPool pool(3);
  std::vector<unsigned> modes(3);
  std::atomic<int> n_arrived{0};
  pool.parallel_for(3, 1, [&](int64_t, int64_t, int thread) {
    modes[static_cast<size_t>(thread)] = __builtin_ia32_stmxcsr() & ~kFlags;
    ++n_arrived;
    while (n_arrived < 3) std::this_thread::yield();
  });
  const unsigned after = __builtin_ia32_stmxcsr();
  __builtin_ia32_ldmxcsr(before);
  EXPECT_EQ(modes, std::vector<unsigned>(3, kIeee));
  EXPECT_EQ(after & ~kFlags, kOther) << "the caller's mode comes back";
}
#endif

TEST(ThreadPool, MayGoWithoutEverHavingWorked) {
  for (int i = 0; i < 50; ++i) ThreadPool pool(1 + i % 4);
}

TEST(ThreadPool, TakesBodiesThatCannotBeCopied) {
  ThreadPool pool(2);
  std::atomic<int64_t> sum{0};
  auto body = [&sum, one = std::make_unique<int64_t>(1)](int64_t begin, int64_t end, int) {
    sum += *one * (end - begin);
  };
  pool.parallel_for(100, 7, body);
  pool.parallel_for(10, 7, std::move(body));
  EXPECT_EQ(sum, 110);
}

TEST(ThreadPoolDeathTest, RefusesAGrainOfZeroAndANegativeNumberOfThreads) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(ThreadPool(2).parallel_for(1, 0, [](int64_t, int64_t, int) {}), "CHECK.*grain");
  EXPECT_DEATH(ThreadPool(-1), "CHECK.*n_threads");
}

TEST(ThreadPoolDeathTest, RefusesALoopInsideALoopOfTheSamePoolButNotOfAnother) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const int64_t n : {1, 4}) {
    ThreadPool pool(2), other(2);
    auto nothing = [](int64_t, int64_t, int) {};
    pool.parallel_for(n, 1, [&](int64_t, int64_t, int) { other.parallel_for(4, 1, nothing); });
    EXPECT_DEATH(pool.parallel_for(n, 1,
                                   [&](int64_t, int64_t, int) {
                                     other.parallel_for(4, 1, nothing);
                                     pool.parallel_for(1, 1, nothing);
                                   }),
                 "CHECK.*inside");
  }
}

// Bodies wait for each other, so that every thread has one of them, and is the one that throws in
// turn; the pieces behind those are run too.
TEST(ThreadPoolFailure, OfAnyThreadReachesTheCallerAndThePoolGoesOn) {
  for (const int n_threads : {1, 2, 4}) {
    ThreadPool pool(n_threads);
    for (int thrower = 0; thrower < n_threads; ++thrower) {
      std::atomic<int> n_run{0};
      std::string text;
      try {
        pool.parallel_for(3 * n_threads, 1, [&](int64_t, int64_t, int thread) {
          const bool is_early = n_run++ < n_threads;
          while (n_run < n_threads) std::this_thread::yield();
          if (is_early && thread == thrower) throw Error(Errc::device, cat("thread ", thread));
        });
      } catch (const Error& error) {
        text = error.what();
      }
      EXPECT_EQ(text, cat("thread ", thrower)) << "of " << n_threads;
      EXPECT_EQ(n_run, 3 * n_threads) << "a piece that is left may run in the next loop";
      std::atomic<int64_t> sum{0};
      pool.parallel_for(100, 3, [&](int64_t begin, int64_t end, int) {
        for (int64_t i = begin; i < end; ++i) sum += i;
      });
      EXPECT_EQ(sum, 4950) << "the loop after a failure";
    }
  }
}

TEST(ThreadPoolFailure, OutOfMemoryIsCarriedAsItIs) {
  for (const int n_threads : {1, 3}) {
    ThreadPool pool(n_threads);
    EXPECT_THROW(pool.parallel_for(9, 1, [](int64_t, int64_t, int) { throw std::bad_alloc(); }),
                 std::bad_alloc);
    EXPECT_THROW(pool.parallel_for(9, 1, [](int64_t, int64_t, int) { throw 7; }), int);
  }
}

// The others throw when the first one's thread has come back for its next piece: then the pool has
// its exception.
TEST(ThreadPoolFailure, TheFirstOfSeveralIsTheOneThatIsThrown) {
  for (const int n_threads : {1, 4}) {
    ThreadPool pool(n_threads);
    std::atomic<int> first_thread{-1};
    std::atomic<bool> is_back{false};
    std::string text;
    try {
      pool.parallel_for(50, 1, [&](int64_t, int64_t, int thread) {
        int nobody = -1;
        if (first_thread.compare_exchange_strong(nobody, thread))
          throw Error(Errc::device, "first");
        if (first_thread == thread) is_back = true;
        while (!is_back) std::this_thread::yield();
        throw Error(Errc::device, "later");
      });
    } catch (const Error& error) {
      text = error.what();
    }
    EXPECT_EQ(text, "first") << n_threads << " threads";
    EXPECT_NO_THROW(pool.parallel_for(50, 1, [](int64_t, int64_t, int) {})) << "kept for later";
  }
}

TEST(ThreadPoolFailure, OneCallersStaysItsOwn) {
  ThreadPool pool(3);
  std::atomic<int> n_caught{0}, n_foreign{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&, c] {
      for (int round = 0; round < 200; ++round) {
        try {
          pool.parallel_for(7, 1, [&](int64_t begin, int64_t, int) {
            if (c > 0 && begin == round % 7) throw c;
          });
        } catch (const int found) {
          ++(found == c ? n_caught : n_foreign);
        }
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(n_caught, 400);
  EXPECT_EQ(n_foreign, 0);
}

TEST(ThreadPoolFailure, LeavesTheThreadFreeForLoopsOfTheSamePool) {
  ThreadPool pool(1);
  EXPECT_THROW(pool.parallel_for(1, 1, [](int64_t, int64_t, int) { throw 1; }), int);
  int n = 0;
  pool.parallel_for(1, 1, [&](int64_t, int64_t, int) { ++n; });  // CHECKs that it is in no body
  EXPECT_EQ(n, 1);
}

}  // namespace
}  // namespace sluice
