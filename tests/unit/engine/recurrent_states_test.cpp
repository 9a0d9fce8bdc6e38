// Texts of models with recurrent layers go back, fork and fail, byte for byte as if what was left
// had never been; and which points of a text are kept.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/recurrent_states.h"

#include <gtest/gtest.h>

#include "sluice/sluice.h"
#include "unit/engine/run_model.h"
#include "unit/engine/speculation.h"

namespace sluice::engine::test {
namespace {

using policy::Phase;

constexpr size_t kHybridVocab = 261;

struct HybridTest : testing::TestWithParam<const char*> {
  HybridTest() : model(GetParam(), "Q8_0") {}

  static RunOptions options(int n_sequences = 1) {
    return {.kv = {.n_sequences = n_sequences, .n_ctx = 400, .page_tokens = 8}};
  }

  OpenModel model;
};

INSTANTIATE_TEST_SUITE_P(Models, HybridTest, testing::ValuesIn(model::test::kHybrids),
                         [](const auto& info) { return std::string(info.param); });

// One row a step, as decoding takes them.
Logits decode(Runner& runner, std::span<const TokenId> tokens, SequenceId sequence = {}) {
  Logits all;
  for (const TokenId token : tokens) {
    runner.stepper().step(std::vector<StepRow>{{token, sequence, true}}, Phase::decode,
                          {[&](int64_t, std::span<const float> logits) {
                            all.insert(all.end(), logits.begin(), logits.end());
                          }});
  }
  return all;
}

// By the updates that tokens left: the model computes nothing.
TEST_P(HybridTest, GoingBackBySomePositionsEqualsNeverHavingBeenThere) {
  const std::vector<TokenId> prompt = random_tokens(20, 1), answer = random_tokens(59, 2),
                             other = random_tokens(9, 3);
  for (int back = 1; back <= policy::kRollbackTokens; ++back) {
    const size_t kept = answer.size() - static_cast<size_t>(back);
    Runner fresh(*model, options()), gone(*model, options());
    fresh.append(prompt, 64);
    decode(fresh, std::span(answer).first(kept));
    gone.append(prompt, 64);
    decode(gone, answer);
    gone.stepper().truncate({}, static_cast<int>(prompt.size() + kept));
    ASSERT_EQ(gone.stepper().n_tokens({}), fresh.stepper().n_tokens({}));
    expect_same_bits(decode(fresh, other), decode(gone, other), "back by " + std::to_string(back));
    EXPECT_EQ(gone.stepper().went_back().n_computed, 0);
    EXPECT_EQ(gone.stepper().went_back().n_replayed > 0, back > 1 && back != 11);  // 68 is a base
  }
}

TEST_P(HybridTest, GoingBackAgainAndAgainEqualsTheTextThatStays) {
  const std::vector<TokenId> text = random_tokens(150, 20);
  Runner runner(*model, options()), fresh(*model, options());
  runner.append(std::span(text).first(3), 64);
  const size_t n = speculate(runner.stepper(), text, 3);
  fresh.append(std::span(text).first(n), 16);
  expect_same_bits(decode(fresh, std::span(text).subspan(n)),
                   decode(runner, std::span(text).subspan(n)), "what stays");
  EXPECT_EQ(runner.stepper().went_back().n_computed, 0);
}

TEST_P(HybridTest, APointCanBeComeBackToMoreThanOnce) {
  const std::vector<TokenId> prompt = random_tokens(33, 4), answer = random_tokens(12, 5);
  Runner runner(*model, options());
  runner.append(prompt, 64);
  const Logits first = decode(runner, answer);
  for (int i = 0; i < 3; ++i) {
    runner.stepper().truncate({}, 33);
    decode(runner, random_tokens(7, 6));
    runner.stepper().truncate({}, 33);
    expect_same_bits(first, decode(runner, answer), "again");
  }
}

TEST_P(HybridTest, AForkGoesOnAsTheTextItIsOf) {
  const std::vector<TokenId> text = random_tokens(30, 7), rest = random_tokens(6, 8);
  for (const size_t at : {0, 1, 17, 24, 29, 30}) {
    Runner runner(*model, options(3));
    runner.append(std::span(text).first(24), 64);
    decode(runner, std::span(text).subspan(24));
    runner.append(random_tokens(5, 9), 5, SequenceId(1));
    runner.stepper().fork(SequenceId(0), SequenceId(1), static_cast<int>(at));
    runner.stepper().truncate(SequenceId(0), 3);  // the fork does not notice
    decode(runner, random_tokens(4, 10), SequenceId(0));
    const Logits got = decode(runner, rest, SequenceId(1));

    Runner alone(*model, options());
    alone.append(std::span(text).first(at), 64);
    expect_same_bits(decode(alone, rest), got, "forked at " + std::to_string(at));
  }
}

TEST_P(HybridTest, AStepThatThrowsLeavesTheStates) {
  const std::vector<TokenId> text = random_tokens(12, 11);
  const Logits all = run_alone(*model, text, 1);
  Runner runner(*model, options(2));
  runner.append(std::span(text).first(5), 5);
  const std::vector<StepRow> rows = {{1, SequenceId(0), false}, {2, SequenceId(1), true}};
  const auto refuse = [](int64_t, std::span<const float>) { throw std::runtime_error("no"); };
  for (int i = 0; i < 30; ++i) {  // more often than there are states
    EXPECT_THROW(runner.stepper().step(rows, Phase::decode, {refuse}), std::runtime_error);
  }
  expect_same_bits(std::span(all).subspan(5 * kHybridVocab),
                   decode(runner, std::span(text).subspan(5)), "the first");
  expect_same_bits(all, decode(runner, text, SequenceId(1)), "the second");
}

// The end of every prompt, and of an answer all that updates lead to.
TEST_P(HybridTest, KeepsThePointsThatTextsGoBackTo) {
  Runner runner(*model, options());
  Stepper& stepper = runner.stepper();
  EXPECT_EQ(stepper.kept_tokens({}, 0), 0);
  runner.append(random_tokens(20, 12), 64);
  decode(runner, random_tokens(60, 13));
  EXPECT_EQ(stepper.kept_tokens({}, 80), 80);
  EXPECT_EQ(stepper.kept_tokens({}, 79), 79);
  EXPECT_EQ(stepper.kept_tokens({}, 64), 64);
  EXPECT_EQ(stepper.kept_tokens({}, 51), 20);
  EXPECT_EQ(stepper.kept_tokens({}, 19), 0);
  stepper.truncate({}, 70);
  EXPECT_EQ(stepper.n_tokens({}), 70);
  EXPECT_EQ(stepper.went_back().n_computed, 0);
  stepper.truncate({}, 40);
  EXPECT_EQ(stepper.n_tokens({}), 40);
  EXPECT_EQ(stepper.went_back().n_computed, 20);
}

// A long text has more points than there is room for; some are given up, the newest never.
TEST_P(HybridTest, GivesUpThePointThatIsMissedLeast) {
  Runner runner(*model, options());
  Stepper& stepper = runner.stepper();
  const std::vector<TokenId> text = random_tokens(360, 14);
  for (const size_t n : {100, 101, 102, 103}) {  // points that are close to each other go first
    const auto held = static_cast<size_t>(stepper.n_tokens({}));
    runner.append(std::span(text).subspan(held, n - held), 64);
  }
  for (size_t n = 120; n <= 360; n += 20) {
    runner.append(std::span(text).subspan(static_cast<size_t>(stepper.n_tokens({})),
                                          n - static_cast<size_t>(stepper.n_tokens({}))),
                  64);
  }
  int widest = 0;
  for (int n = 1; n <= 360; ++n) widest = std::max(widest, n - stepper.kept_tokens({}, n));
  EXPECT_LE(widest, 180);
  stepper.truncate({}, 110);
  const Logits expected = run_alone(*model, text, 64, options());
  expect_same_bits(std::span(expected).subspan(110 * kHybridVocab, 50 * kHybridVocab),
                   runner.append(std::span(text).subspan(110, 50), 64), "after going back");
}

// A prompt's steps end at the points that are asked for, where the model needs that.
TEST(RecurrentStates, AreKeptWhereASessionIsToldTo) {
  const std::vector<TokenId> tokens = random_tokens(60, 16);
  const OpenModel hybrid("qwen3next", "Q8_0"), attending("qwen3moe", "Q8_0");
  Session session(sluice::Model::load(hybrid.path(), {.n_threads = 1}), {.n_ctx = 128});
  session.append(tokens, {}, {.keep_at = {0, 10, 33, 60, 90}});
  EXPECT_EQ(session.stats().n_prefill_steps, 3);
  EXPECT_EQ(session.kept_tokens(9), 0);
  EXPECT_EQ(session.kept_tokens(32), 10);
  EXPECT_EQ(session.kept_tokens(59), 33);
  EXPECT_EQ(session.kept_tokens(1000), 60);
  Session other(sluice::Model::load(attending.path(), {.n_threads = 1}), {.n_ctx = 128});
  other.append(tokens, {}, {.keep_at = {10, 33}});
  EXPECT_EQ(other.stats().n_prefill_steps, 1);
  EXPECT_EQ(other.kept_tokens(32), 32);
}

TEST(RecurrentStates, ASessionCountsHowItWentBack) {
  const OpenModel hybrid("qwen35moe", "Q8_0");
  Session session(sluice::Model::load(hybrid.path(), {.n_threads = 1}), {.n_ctx = 128});
  session.generate(random_tokens(30, 17), {.n_tokens = 20});
  const int n = session.n_tokens();
  session.truncate(n - 5);
  EXPECT_GT(session.stats().n_replayed_tokens, 0);
  EXPECT_EQ(session.stats().n_recomputed_tokens, 0);
  session.truncate(25);
  EXPECT_EQ(session.stats().n_recomputed_tokens, 25);
}

TEST(RecurrentStates, AModelThatAttendsEverywhereHoldsNone) {
  const OpenModel model("qwen3moe", "F32");
  Runner runner(*model);
  runner.append(random_tokens(9, 15), 4);
  EXPECT_EQ(runner.stepper().state_bytes(), 0u);
  EXPECT_EQ(runner.stepper().kept_tokens({}, 5), 5);
}

// Keys and values of attention layers alone, and the states as the planner prices them.
TEST(RecurrentStates, TakeTheMemoryThatThePlannerPrices) {
  const OpenModel model("qwen35moe", "Q8_0");
  const KvOptions kv{.n_sequences = 3, .n_ctx = 128, .page_tokens = policy::kKvPageTokens};
  Runner runner(*model, {.kv = kv});
  const policy::ModelShape shape = model.shape();
  policy::Placement on_cpu;
  on_cpu.n_slots.resize(shape.layers.size());
  const policy::Price price = policy::price(shape, {.n_ctx = 128, .n_sequences = 3}, on_cpu);
  EXPECT_EQ(runner.stepper().state_bytes(), price.host.state);
  EXPECT_EQ(runner.stepper().kv_bytes(), price.host.kv);
}

}  // namespace
}  // namespace sluice::engine::test
