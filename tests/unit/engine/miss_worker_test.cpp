// The host's side of the mailbox around steps: a deadline is a request's own, and nothing of a step
// that failed is left for the next one. The clock is the test's.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/miss_worker.h"

#include <gtest/gtest.h>

#include "unit/backend/routing.h"
#include "unit/engine/held_worker.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using namespace std::chrono_literals;
using backend::test::ExpertInput;
using backend::test::Rows;

struct MissWorkerTest : testing::Test {
  OpenModel model{"qwen3moe", "Q8_0"};
  backend::RamDevice device{{.n_bytes = kMiB, .before_copy = {}}};
  backend::Mailbox mailbox{device, {.max_rows = 1, .max_pairs = 3, .n_cols = 64}};
  ThreadPool threads{1};
  ExpertInput input{Rows::random(1, 64, 5)};

  uint64_t ask(int layer) {
    const std::vector<backend::ExpertPair> pairs = {{1, 0, 0}};
    const uint64_t number = backend::request_number(1, LayerId(layer));
    EXPECT_TRUE(post(mailbox.view(), number, pairs, input.view()));
    return number;
  }
};

TEST_F(MissWorkerTest, ARequestThatAFailedStepLeftIsNotOpenInTheNext) {
  std::atomic<uint32_t> n_seen = 0;
  MissWorker worker(*model, threads, mailbox,
                    {.deadline = 60s, .before_answer = [&](const auto&) { ++n_seen; }});
  ask(0);  // by a step that fails before anybody has looked
  worker.abort_step();
  EXPECT_EQ(worker.end_step(), "");
  EXPECT_EQ(mailbox.open_number(), 0u);
  worker.begin_step();
  EXPECT_TRUE(wait(mailbox.view(), ask(1)));
  worker.end_step();
  EXPECT_EQ(n_seen, 1u);
}

TEST_F(MissWorkerTest, AFailedStepEndsOnlyWhenItsRequestIsReadByNobody) {
  HeldWorker held;
  std::atomic<bool> has_let_go = false;
  MissWorker worker(*model, threads, mailbox, {.deadline = 60s, .before_answer = [&](const auto&) {
                                                 held.stand();
                                                 has_let_go = true;
                                               }});
  worker.begin_step();
  ask(0);
  held.wait_until_it_stands();
  std::atomic<bool> is_ending = false, had_let_go = false;
  std::thread step([&] {
    is_ending = true;
    worker.abort_step();
    worker.end_step();
    had_let_go = has_let_go.load();
  });
  while (!is_ending) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) std::this_thread::yield();  // time for a step that does not wait
  held.release();
  step.join();
  EXPECT_TRUE(had_let_go);
  EXPECT_EQ(mailbox.open_number(), 0u);
  worker.begin_step();
  EXPECT_TRUE(wait(mailbox.view(), ask(1)));
  worker.end_step();
}

// Each of a step's requests takes more than half of the deadline.
TEST(MissDeadline, IsEachRequestsOwn) {
  const OpenModel model("qwen3moe", "Q8_0");
  StandingClock clock;
  Place place{.share = 0.0};
  int n_requests = 0;
  place.misses = {.deadline = 80ms, .now = clock.now(), .before_answer = [&](const auto&) {
                    clock.wait_until_seen();
                    clock.advance(50ms);
                    clock.wait_until_seen();
                    ++n_requests;
                  }};
  Placed placed(model, place);
  const std::vector<TokenId> tokens = text(3);
  expect_same_bits(run_alone(*model, tokens), placed.run(tokens, 3), "in time");
  EXPECT_EQ(n_requests, 2) << "one for each layer of one step";
}

}  // namespace
}  // namespace sluice::engine::test
