// How a text becomes steps: as many as its chunks, in the phase it was said to be, with logits for
// the rows that somebody wants; what is told on the way, where a prompt may be stopped, and what is
// held after a fault. On a driver that only writes down what it is asked for.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/text_steps.h"

#include <gtest/gtest.h>

#include <new>

#include "backend/cpu/host_memory.h"
#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using policy::Phase;

constexpr int kStepLayers = 4;

struct SeenStep {
  size_t n_rows = 0;
  Phase phase = Phase::decode;
  std::vector<int> wanted;  // positions
};

class RecordingDriver final : public StepDriver {
 public:
  explicit RecordingDriver(int max_rows) : max_rows_(max_rows) {}

  void step(std::span<const StepRow> rows, Phase phase, const StepListener& listener) override {
    SeenStep& seen = steps.emplace_back();
    seen.n_rows = rows.size();
    seen.phase = phase;
    for (int i = 0; i < kStepLayers; ++i) {
      if (std::ssize(steps) == fails_at && i == 2) throw std::bad_alloc();
      if (listener.on_layer) listener.on_layer(i + 1, kStepLayers);
    }
    for (size_t r = 0; r < rows.size(); ++r) {
      const int pos = n_tokens_ + static_cast<int>(r);
      if (rows[r].n_best > 0) {
        backend::PickedRow picked{.is_finite = 1, .n_best = 1, .best = {}};
        picked.best[0] = {rows[r].token, 0.0f};
        listener.on_pick(static_cast<int64_t>(r), picked);
      }
      if (!rows[r].wants_logits) continue;
      seen.wanted.push_back(pos);
      const float logits[] = {static_cast<float>(pos), static_cast<float>(rows[r].token)};
      listener.on_logits(static_cast<int64_t>(r), logits);
    }
    n_tokens_ += static_cast<int>(rows.size());
  }
  void truncate(SequenceId, int n_tokens) override { n_tokens_ = n_tokens; }
  void fork(SequenceId, SequenceId, int) override {}
  int n_tokens(SequenceId) const override { return n_tokens_; }
  int max_rows() const override { return max_rows_; }
  uint64_t kv_bytes() const override { return 0; }
  const RoutingLog& log() const override { return log_; }
  double seconds() const override { return static_cast<double>(steps.size()); }

  std::vector<SeenStep> steps;
  int64_t fails_at = -1;  // which step; from 1

 private:
  int max_rows_;
  int n_tokens_ = 0;
  RoutingLog log_{backend::allocate_host, 1, 1, 1};
};

struct Text {
  explicit Text(int chunk)
      : driver(new RecordingDriver(chunk)),
        text(std::unique_ptr<StepDriver>(driver), "model.gguf", {}) {}

  bool prefill(size_t n, const PromptOptions& options = {}) {
    return text.prefill(random_tokens(n, 1), {}, options);
  }

  RecordingDriver* driver;  // the text's
  TextSteps text;
};

TEST(TextSteps, APromptTakesAsManyStepsAsItHasChunks) {
  for (const int chunk : {1, 7, 16}) {
    for (int n = 1; n <= 40; ++n) {
      Text t(chunk);
      EXPECT_TRUE(t.prefill(static_cast<size_t>(n)));
      const auto& steps = t.driver->steps;
      ASSERT_EQ(std::ssize(steps), (n + chunk - 1) / chunk) << n << " tokens, " << chunk;
      EXPECT_EQ(t.text.stats().n_prefill_steps, std::ssize(steps));
      EXPECT_EQ(t.text.stats().n_prefill_tokens, n);
      EXPECT_EQ(t.text.stats().prefill_seconds, static_cast<double>(steps.size()));
      for (const SeenStep& step : steps) {
        EXPECT_EQ(step.phase, Phase::prefill) << "also where it is narrow";
        const bool is_last = &step == &steps.back();
        EXPECT_EQ(step.wanted, is_last ? std::vector{n - 1} : std::vector<int>{});
      }
      EXPECT_EQ(t.text.last_logits()[0], static_cast<float>(n - 1));
    }
  }
}

TEST(TextSteps, DecodingIsItsOwnPhase) {
  Text t(8);
  t.prefill(9);
  t.text.decode(5);
  const SeenStep& step = t.driver->steps.back();
  EXPECT_EQ(step.phase, Phase::decode);
  EXPECT_EQ(step.n_rows, 1u);
  EXPECT_EQ(t.text.last_logits()[0], 9.0f);
  EXPECT_EQ(t.text.last_logits()[1], 5.0f);
  EXPECT_EQ(t.text.stats().n_prefill_tokens, 9);
  EXPECT_EQ(t.text.stats().n_decode_tokens, 1);
  EXPECT_EQ(t.text.stats().decode_seconds, 1.0);
}

TEST(TextSteps, RowsWhoseLogitsNobodyWantsComputeNone) {
  Text t(4);
  std::vector<int> given, wanted;
  t.text.prefill(random_tokens(10, 1),
                 [&](int pos, std::span<const float>) { given.push_back(pos); },
                 {.logits_from = 6});
  for (const SeenStep& step : t.driver->steps) {
    wanted.insert(wanted.end(), step.wanted.begin(), step.wanted.end());
  }
  EXPECT_EQ(wanted, (std::vector{6, 7, 8, 9}));
  EXPECT_EQ(given, wanted);
  given.clear();
  t.text.prefill(random_tokens(3, 1),
                 [&](int pos, std::span<const float>) { given.push_back(pos); },
                 {.logits_from = 100});
  EXPECT_TRUE(given.empty());
  EXPECT_EQ(t.driver->steps.back().wanted, std::vector{12}) << "to go on from";
}

// From 0, never backwards, after every layer, to the end.
TEST(TextSteps, ProgressIsToldInsideAChunk) {
  Text t(8);
  std::vector<int> told;
  t.prefill(20, {.progress = [&](int n_done, int n_total) {
              EXPECT_EQ(n_total, 20);
              told.push_back(n_done);
            }});
  EXPECT_EQ(told, (std::vector{0, 2, 4, 6, 8, 10, 12, 14, 16, 17, 18, 19, 20}));
}

TEST(TextSteps, AStoppedPromptHoldsTheChunksBefore) {
  for (int n_allowed = 0; n_allowed < 4; ++n_allowed) {
    Text t(8);
    t.prefill(3);
    int n_asked = 0;
    const bool is_whole = t.prefill(30, {.should_stop = [&] { return n_asked++ == n_allowed; }});
    EXPECT_FALSE(is_whole);
    EXPECT_EQ(t.text.n_tokens(), 3 + 8 * n_allowed);
    EXPECT_EQ(t.text.stats().n_prefill_tokens, 3 + 8 * n_allowed);
    EXPECT_EQ(t.text.last_logits().empty(), n_allowed > 0);
    EXPECT_TRUE(t.prefill(5));
    EXPECT_EQ(t.text.n_tokens(), 8 + 8 * n_allowed);
  }
  Text t(8);
  EXPECT_TRUE(t.prefill(8, {.should_stop = [&] { return t.text.n_tokens() > 0; }})) << "too late";
}

TEST(TextSteps, AFaultLeavesWhatWasHeldWhenItsStepBegan) {
  Text t(8);
  t.prefill(4);
  t.driver->fails_at = 2;
  EXPECT_THROW(t.prefill(20), std::bad_alloc);
  EXPECT_EQ(t.text.n_tokens(), 4);
  ASSERT_FALSE(t.text.last_logits().empty()) << "the text is the same, and so is what may follow";
  EXPECT_EQ(t.text.last_logits()[0], 3.0f);
  t.driver->fails_at = 5;
  EXPECT_THROW(t.prefill(20), std::bad_alloc);
  EXPECT_EQ(t.text.n_tokens(), 20);
  EXPECT_TRUE(t.text.last_logits().empty());
  EXPECT_EQ(t.text.stats().n_prefill_tokens, 20);
  EXPECT_EQ(t.text.stats().n_prefill_steps, 3);
}

TEST(TextSteps, LogitsThatAreNotFiniteFailTheStepWithTheFilesName) {
  class NotFinite final : public StepDriver {
   public:
    void step(std::span<const StepRow>, Phase, const StepListener& listener) override {
      listener.on_logits(0, std::vector<float>{1.0f, std::nanf("")});
    }
    void truncate(SequenceId, int) override {}
    void fork(SequenceId, SequenceId, int) override {}
    int n_tokens(SequenceId) const override { return 7; }
    int max_rows() const override { return 1; }
    uint64_t kv_bytes() const override { return 0; }
    const RoutingLog& log() const override { return log_; }
    double seconds() const override { return 0.0; }

   private:
    RoutingLog log_{backend::allocate_host, 1, 1, 1};
  };
  TextSteps text(std::make_unique<NotFinite>(), "model.gguf", {});
  expect_contains(error_of(Errc::bad_file, [&] { text.decode(1); }),
                  "model.gguf: the logits at position 7 are not finite");
  EXPECT_TRUE(text.last_logits().empty());
}

// Of a token whose step failed nothing is known: the logits are those of the one before it.
TEST(TextSteps, AfterAFailedStepTheNewestTokenIsTheOneBefore) {
  auto owned = std::make_unique<RecordingDriver>(4);
  RecordingDriver& driver = *owned;
  TextSteps text(std::move(owned), "m", {});
  text.decode(5, TextSteps::Known::best);
  driver.fails_at = 2;
  EXPECT_THROW(text.decode(6, TextSteps::Known::best), std::bad_alloc);
  EXPECT_EQ(text.best_token(), 5);
  const std::span<const float> logits = text.last_logits();
  ASSERT_EQ(logits.size(), 2u);
  EXPECT_EQ(logits[0], 0.0f);  // its position
  EXPECT_EQ(logits[1], 5.0f);  // and itself
  EXPECT_EQ(text.n_tokens(), 1);
}

}  // namespace
}  // namespace sluice::engine::test
