// The log: in order, complete where somebody reads, and no obstacle where nobody does.
// SPDX-License-Identifier: Apache-2.0
#include "server/log_queue.h"

#include <gtest/gtest.h>

#include <csignal>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace sluice::server {
namespace {

// A reader who stands still until he is let go.
struct Reader {
  std::promise<void> has_line;  // set with the first
  std::promise<void> may_go;
  std::shared_future<void> goes = may_go.get_future().share();
  std::mutex mutex;
  std::vector<std::string> seen;

  void take(const std::string& line) {
    bool is_first = false;
    {
      const std::scoped_lock lock(mutex);
      is_first = seen.empty();
      seen.push_back(line);
    }
    if (is_first) has_line.set_value();
    goes.wait();
  }
};

LogQueue::Sink sink_of(const std::shared_ptr<Reader>& reader) {
  return [reader](const std::string& line) { reader->take(line); };
}

TEST(LogQueue, HandsOnAllLinesInOrderBeforeItEnds) {
  const auto reader = std::make_shared<Reader>();
  reader->may_go.set_value();
  {
    LogQueue log(sink_of(reader));
    for (int i = 0; i < 100; ++i) log.push(std::to_string(i));
  }
  ASSERT_EQ(reader->seen.size(), 100U);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(reader->seen[static_cast<size_t>(i)], std::to_string(i));
}

TEST(LogQueue, DropsTheOldestAndSaysHowMany) {
  const auto reader = std::make_shared<Reader>();
  {
    LogQueue log(sink_of(reader), 2);
    log.push("0");
    reader->has_line.get_future().wait();  // so that none of the next is taken out
    for (int i = 1; i < 6; ++i) log.push(std::to_string(i));
    reader->may_go.set_value();
  }
  const std::vector<std::string> expected = {
      "0", "(3 lines of the log were dropped: nobody read them in time)", "4", "5"};
  EXPECT_EQ(reader->seen, expected);
}

// Under TSan too (make tsan).
TEST(LogQueue, TakesTheLinesOfManyThreads) {
  constexpr int kThreads = 4, kLines = 200;
  const auto reader = std::make_shared<Reader>();
  reader->may_go.set_value();
  {
    LogQueue log(sink_of(reader), kThreads * kLines);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log, t] {
        for (int i = 0; i < kLines; ++i) log.push(std::to_string(t * kLines + i));
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  ASSERT_EQ(reader->seen.size(), static_cast<size_t>(kThreads * kLines));
  std::vector<int> next(kThreads, 0);  // by thread: its lines come in their order
  for (const std::string& line : reader->seen) {
    const int number = std::stoi(line);
    EXPECT_EQ(number % kLines, next[static_cast<size_t>(number / kLines)]++);
  }
}

// Lines that are pushed while others are dropped and read: what was said and what was told to be
// dropped are all of them.
TEST(LogQueue, CountsWhatManyThreadsLose) {
  constexpr int kThreads = 4, kLines = 300;
  const auto reader = std::make_shared<Reader>();
  reader->may_go.set_value();
  {
    LogQueue log(sink_of(reader), 3);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&log] {
        for (int i = 0; i < kLines; ++i) log.push("a line");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  int n_lines = 0;
  for (const std::string& line : reader->seen) {
    n_lines += line[0] == '(' ? std::stoi(line.substr(1)) : 1;
  }
  EXPECT_EQ(n_lines, kThreads * kLines);
}

TEST(LogQueue, EndsThoughItsReaderStandsStill) {
  const auto reader = std::make_shared<Reader>();
  {
    LogQueue log(sink_of(reader));
    log.push("0");
    log.push("1");
    reader->has_line.get_future().wait();
  }
  EXPECT_EQ(reader->seen, std::vector<std::string>{"0"});
  reader->may_go.set_value();
}

TEST(LogQueue, OutlivesAReaderWhoHasLeft) {
  LogQueue log([](const std::string&) { std::raise(SIGPIPE); });
  log.push("0");
}

}  // namespace
}  // namespace sluice::server
