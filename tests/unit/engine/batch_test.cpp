// Steps of many requests, one by one and without a thread: who advances in which step, and who
// makes room where KV pages are short.
// SPDX-License-Identifier: Apache-2.0
#include "engine/serving/batch.h"

#include <gtest/gtest.h>

#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

struct BatchTest : testing::Test {
  // max_rows is what a prompt's chunk would be.
  void make(int max_rows, const KvOptions& kv, const BatchOptions& options) {
    runner.emplace(*file, RunOptions{.max_rows = max_rows, .kv = kv});
    batch.emplace(runner->stepper(), options);
  }

  std::shared_ptr<LiveRequest> add(Request request) {
    auto live = std::make_shared<LiveRequest>(++last_id, std::move(request));
    batch->add(live);
    return live;
  }

  OpenModel file{"qwen3moe", "Q8_0"};
  std::optional<Runner> runner;
  std::optional<Batch> batch;
  uint64_t last_id = 0;
};

// While a long prompt is read, others' tokens are never further apart than one step, which has
// fewer rows than a chunk; and the prompt advances in every one of them.
TEST_F(BatchTest, ALongPromptStallsNobody) {
  constexpr int kChunk = 128;
  make(kChunk, {.n_sequences = 6, .n_ctx = 4096, .page_tokens = 64, .n_pages = 128},
       {.n_sequences = 4, .n_kept = 2, .n_ctx = 4096});
  std::vector<int64_t> steps_of[3], rows_of[3];
  for (int i = 0; i < 3; ++i) {
    add({.prompt = random_tokens(10, static_cast<uint64_t>(i)), .on_token = [&, i](TokenId) {
           steps_of[i].push_back(batch->stats().n_steps);
           rows_of[i].push_back(batch->stats().n_prompt_tokens);
           return true;
         }});
  }
  batch->step();
  int n_before = 0;
  bool is_read = false;
  add({.prompt = random_tokens(4000, 9),
       .n_tokens = 1,
       .on_token =
           [&](TokenId) {
             is_read = true;
             return true;
           },
       .on_prompt =
           [&](int n_done, int) {
             EXPECT_GT(n_done, n_before);
             n_before = n_done;
           }});
  while (!is_read) batch->step();
  for (int i = 0; i < 3; ++i) {
    ASSERT_GT(steps_of[i].size(), 10u);
    for (size_t k = 1; k < steps_of[i].size(); ++k) {
      EXPECT_EQ(steps_of[i][k] - steps_of[i][k - 1], 1);
      EXPECT_LT(rows_of[i][k] - rows_of[i][k - 1], kChunk);
    }
  }
}

TEST_F(BatchTest, PromptsTakeTurnsBesideWhoDecodes) {
  make(64, {.n_sequences = 4, .n_ctx = 512, .page_tokens = 16}, {.n_sequences = 4, .n_ctx = 512});
  add({.prompt = {1}});
  batch->step();
  int n_done[2] = {};
  for (int i = 0; i < 2; ++i) {
    add({.prompt = random_tokens(300, 30 + static_cast<uint64_t>(i)),
         .n_tokens = 0,
         .on_prompt = [&, i](int n, int) { n_done[i] = n; }});
  }
  for (int step = 0; step < 8; ++step) {
    batch->step();
    EXPECT_LE(std::abs(n_done[0] - n_done[1]), 32) << "step " << step;
  }
  EXPECT_EQ(n_done[0], 4 * 32);
}

// The oldest never gives way; the youngest waits first in line, and goes on where it was.
TEST_F(BatchTest, TheYoungestMakesRoom) {
  make(64, {.n_sequences = 4, .n_ctx = 128, .page_tokens = 16, .n_pages = 8},
       {.n_sequences = 3, .n_kept = 1, .n_ctx = 128});
  std::vector<int> ended;
  for (int i = 0; i < 3; ++i) {
    add({.prompt = random_tokens(30, 40 + static_cast<uint64_t>(i)),
         .n_tokens = 60,
         .on_end = [&, i](const RequestEnd& end) {
           EXPECT_EQ(end.reason, StopReason::length);
           EXPECT_EQ(end.n_new, 60);
           ended.push_back(i);
         }});
  }
  int n_steps = 0;
  while (!batch->is_idle() && ++n_steps < 1000) batch->step();
  EXPECT_EQ(ended, (std::vector{0, 1, 2}));
  EXPECT_GT(batch->stats().n_paused, 0);
  EXPECT_LT(n_steps, 3 * 70) << "at most one after the other";
}

TEST_F(BatchTest, KeptTextsLeaveBeforeAnybodyPauses) {
  make(64, {.n_sequences = 4, .n_ctx = 128, .page_tokens = 16, .n_pages = 8},
       {.n_sequences = 2, .n_kept = 2, .n_ctx = 128});
  const auto run = [&](uint64_t seed, size_t n) {
    int n_reused = -1;
    add({.prompt = random_tokens(n, seed), .n_tokens = 1, .on_end = [&](const RequestEnd& end) {
           n_reused = end.n_reused;
         }});
    while (!batch->is_idle()) batch->step();
    return n_reused;
  };
  EXPECT_EQ(run(1, 60), 0);
  EXPECT_EQ(run(2, 60), 0);
  EXPECT_EQ(batch->stats().n_kept_texts, 2);
  EXPECT_EQ(run(1, 60), 59) << "both are kept, and this one is used last";
  EXPECT_EQ(run(3, 60), 0) << "four pages of the other are given up";
  EXPECT_EQ(run(1, 60), 59);
  EXPECT_EQ(run(2, 60), 0);
  EXPECT_EQ(batch->stats().n_paused, 0);
}

// A chat whose template leaves out the thoughts of earlier answers differs from the kept text
// behind its last question. However often it goes on, the texts of others stay.
TEST_F(BatchTest, AFollowUpTakesTheSlotOfTheTextThatItFollows) {
  make(64, {.n_sequences = 3, .n_ctx = 512, .page_tokens = 16},
       {.n_sequences = 1, .n_kept = 2, .n_ctx = 512});
  std::vector<TokenId> chats[3];
  const auto ask = [&](int i, uint64_t seed) {
    std::vector<TokenId>& chat = chats[i];
    const auto n_before = static_cast<int>(chat.size());
    const auto question = random_tokens(20, seed);
    chat.insert(chat.end(), question.begin(), question.end());
    int n_reused = -1;
    add({.prompt = chat,
         .keep_at = {n_before, static_cast<int>(chat.size())},
         .n_tokens = 10,
         .on_end = [&](const RequestEnd& end) { n_reused = end.n_reused; }});
    while (!batch->is_idle()) batch->step();
    EXPECT_GE(n_reused, n_before) << "chat " << i << ", question " << seed;
  };
  for (int i = 0; i < 3; ++i) ask(i, 60 + static_cast<uint64_t>(i));
  for (uint64_t k = 0; k < 5; ++k) ask(0, 70 + k);
  for (int i = 0; i < 3; ++i) ask(i, 80 + static_cast<uint64_t>(i));
}

// Those that were in it, but not those that wait; and what they had computed is not kept.
TEST_F(BatchTest, AFailedStepFailsThoseInIt) {
  class Failing final : public StepDriver {
   public:
    explicit Failing(Stepper& inner) : inner_(inner) {}
    void step(std::span<const StepRow> rows, policy::Phase phase,
              const StepListener& listener) override {
      if (fails) throw Error(Errc::device, "the device is gone");
      inner_.step(rows, phase, listener);
    }
    void truncate(SequenceId s, int n) override { inner_.truncate(s, n); }
    void fork(SequenceId from, SequenceId to, int n) override { inner_.fork(from, to, n); }
    int n_tokens(SequenceId s) const override { return inner_.n_tokens(s); }
    int max_rows() const override { return inner_.max_rows(); }
    uint64_t kv_bytes() const override { return inner_.kv_bytes(); }
    KvPages kv_pages() const override { return inner_.kv_pages(); }
    const RoutingLog& log() const override { return inner_.log(); }
    double seconds() const override { return inner_.seconds(); }
    bool fails = false;

   private:
    Stepper& inner_;
  };
  runner.emplace(*file, RunOptions{.kv = {.n_sequences = 2, .n_ctx = 64, .page_tokens = 16}});
  Failing driver(runner->stepper());
  batch.emplace(driver, BatchOptions{.n_sequences = 1, .n_kept = 1, .n_ctx = 64});
  std::vector<RequestEnd> ends;
  for (int i = 0; i < 2; ++i) {
    add({.prompt = random_tokens(20, 50), .n_tokens = 3, .on_end = [&](const RequestEnd& end) {
           ends.push_back(end);
         }});
  }
  batch->step();
  driver.fails = true;
  batch->step();
  driver.fails = false;
  ASSERT_EQ(ends.size(), 1u) << "the other one waits";
  EXPECT_EQ(ends[0].reason, StopReason::failed);
  EXPECT_EQ(ends[0].n_new, 1);
  while (!batch->is_idle()) batch->step();
  EXPECT_EQ(ends[1].reason, StopReason::length);
  EXPECT_EQ(ends[1].n_reused, 0) << "what failed is not kept";
}

}  // namespace
}  // namespace sluice::engine::test
