// Recurrent states in a device's memory: texts go back, fork and fail as on the CPU, byte for byte,
// whichever layers are the device's, and a recorded step serves whatever states it is given.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "sluice/sluice.h"
#include "unit/engine/placed_model.h"
#include "unit/engine/speculation.h"

namespace sluice::engine::test {
namespace {

using policy::Phase;

// A hybrid whose first layers are the host's, as many as the parameter says, and of whose experts
// the device has some.
struct DeviceStates : testing::TestWithParam<std::tuple<const char*, int>> {
  DeviceStates() : model(std::get<0>(GetParam()), "Q8_0") {}

  Place place(int n_sequences = 1) const {
    return {.share = 0.3,
            .n_host_layers = std::get<1>(GetParam()),
            .n_ctx = 400,
            .n_sequences = n_sequences};
  }
  RunOptions on_cpu(int n_sequences = 1) const {
    return {.kv = {.n_sequences = n_sequences, .n_ctx = 400, .page_tokens = policy::kKvPageTokens}};
  }

  OpenModel model;
};

INSTANTIATE_TEST_SUITE_P(Models, DeviceStates,
                         testing::Combine(testing::ValuesIn(model::test::kHybrids),
                                          testing::Values(0, 1, 2)),
                         [](const auto& info) {
                           return cat(std::get<0>(info.param), "_", std::get<1>(info.param));
                         });

Logits take_steps(StepDriver& driver, std::span<const TokenId> tokens, size_t width, Phase phase,
                  SequenceId sequence = {}) {
  Logits all;
  for (size_t begin = 0; begin < tokens.size(); begin += width) {
    std::vector<StepRow> rows;
    for (const TokenId token : tokens.subspan(begin, std::min(width, tokens.size() - begin))) {
      rows.push_back({token, sequence, true});
    }
    driver.step(rows, phase, {[&](int64_t, std::span<const float> logits) {
                  all.insert(all.end(), logits.begin(), logits.end());
                }});
  }
  return all;
}

Logits take_prompt(StepDriver& driver, std::span<const TokenId> tokens, SequenceId sequence = {}) {
  return take_steps(driver, tokens, 64, Phase::prefill, sequence);
}
Logits take_answer(StepDriver& driver, std::span<const TokenId> tokens, SequenceId sequence = {}) {
  return take_steps(driver, tokens, 1, Phase::decode, sequence);
}

TEST_P(DeviceStates, GoingBackEqualsNeverHavingBeenThere) {
  const std::vector<TokenId> prompt = random_tokens(20, 1), answer = random_tokens(19, 2),
                             other = random_tokens(9, 3);
  Placed placed(model, place());
  for (int back = 1; back <= 16; ++back) {
    const size_t kept = answer.size() - static_cast<size_t>(back);
    Runner fresh(*model, on_cpu());
    take_prompt(fresh.stepper(), prompt);
    take_answer(fresh.stepper(), std::span(answer).first(kept));
    placed.runtime.truncate({}, 0);
    take_prompt(placed.runtime, prompt);
    take_answer(placed.runtime, answer);
    placed.runtime.truncate({}, static_cast<int>(prompt.size() + kept));
    ASSERT_EQ(placed.runtime.n_tokens({}), fresh.stepper().n_tokens({}));
    expect_same_bits(take_answer(fresh.stepper(), other), take_answer(placed.runtime, other),
                     "back by " + std::to_string(back));
  }
  EXPECT_EQ(placed.runtime.went_back().n_computed, 0);
  EXPECT_EQ(placed.runtime.n_forwards(), 16 + 1);  // the prompts, and one recording
}

TEST_P(DeviceStates, GoingBackAgainAndAgainEqualsTheTextThatStays) {
  const std::vector<TokenId> text = random_tokens(150, 20);
  Placed placed(model, place());
  take_prompt(placed.runtime, std::span(text).first(3));
  const size_t n = speculate(placed.runtime, text, 3);
  Runner fresh(*model, on_cpu());
  take_prompt(fresh.stepper(), std::span(text).first(n));
  expect_same_bits(take_answer(fresh.stepper(), std::span(text).subspan(n)),
                   take_answer(placed.runtime, std::span(text).subspan(n)), "what stays");
  EXPECT_EQ(placed.runtime.went_back().n_computed, 0);
}

TEST_P(DeviceStates, APointCanBeComeBackToMoreThanOnce) {
  const std::vector<TokenId> prompt = random_tokens(33, 4), answer = random_tokens(12, 5);
  Placed placed(model, place());
  take_prompt(placed.runtime, prompt);
  const Logits first = take_answer(placed.runtime, answer);
  for (int i = 0; i < 3; ++i) {
    placed.runtime.truncate({}, 33);
    take_answer(placed.runtime, random_tokens(7, 6));
    placed.runtime.truncate({}, 33);
    expect_same_bits(first, take_answer(placed.runtime, answer), "again");
  }
}

TEST_P(DeviceStates, AForkGoesOnAsTheTextItIsOf) {
  const std::vector<TokenId> text = random_tokens(30, 7), rest = random_tokens(6, 8);
  for (const size_t at : {0, 1, 17, 24, 29, 30}) {
    Placed placed(model, place(3));
    ExpertRuntime& runtime = placed.runtime;
    take_prompt(runtime, std::span(text).first(24));
    take_answer(runtime, std::span(text).subspan(24));
    take_prompt(runtime, random_tokens(5, 9), SequenceId(1));
    runtime.fork(SequenceId(0), SequenceId(1), static_cast<int>(at));
    runtime.truncate(SequenceId(0), 3);  // the fork does not notice
    take_answer(runtime, random_tokens(4, 10), SequenceId(0));
    const Logits got = take_answer(runtime, rest, SequenceId(1));

    Runner alone(*model, on_cpu());
    take_prompt(alone.stepper(), std::span(text).first(at));
    expect_same_bits(take_answer(alone.stepper(), rest), got, "forked at " + std::to_string(at));
  }
}

// Rows of three texts in turn: those of one text follow each other within the step.
TEST_P(DeviceStates, AStepHoldsRowsOfSeveralTexts) {
  const std::vector<TokenId> tokens = random_tokens(120, 11);
  for (const size_t width : {5, 16, 40}) {
    Placed placed(model, place(3));
    std::vector<Logits> got(3);
    for (size_t begin = 0; begin < tokens.size(); begin += width) {
      std::vector<StepRow> rows;
      for (size_t i = begin; i < std::min(begin + width, tokens.size()); ++i) {
        rows.push_back({tokens[i], SequenceId(static_cast<int32_t>(i * i / 2 % 3)), true});
      }
      std::ranges::stable_sort(rows, {}, [](const StepRow& row) { return row.sequence.value; });
      placed.runtime.step(rows, Phase::decode, {[&](int64_t row, std::span<const float> logits) {
                            const auto s = rows[static_cast<size_t>(row)].sequence.value;
                            Logits& out = got[static_cast<size_t>(s)];
                            out.insert(out.end(), logits.begin(), logits.end());
                          }});
    }
    for (size_t s = 0; s < 3; ++s) {
      std::vector<TokenId> own;
      for (size_t i = 0; i < tokens.size(); ++i) {
        if (i * i / 2 % 3 == s) own.push_back(tokens[i]);
      }
      expect_same_bits(run_alone(*model, own, 64, on_cpu()), got[s], cat("text ", s));
    }
  }
}

TEST_P(DeviceStates, AStepThatThrowsLeavesThem) {
  const std::vector<TokenId> text = random_tokens(12, 12);
  const Logits all = run_alone(*model, text, 1);
  Placed placed(model, place(2));
  take_prompt(placed.runtime, std::span(text).first(5));
  const std::vector<StepRow> rows = {{1, SequenceId(0), false}, {2, SequenceId(1), true}};
  const auto refuse = [](int64_t, std::span<const float>) { throw std::runtime_error("no"); };
  for (int i = 0; i < 30; ++i) {  // more often than there are states
    EXPECT_THROW(placed.runtime.step(rows, Phase::decode, {refuse}), std::runtime_error);
  }
  expect_same_bits(std::span(all).subspan(5 * 261),
                   take_answer(placed.runtime, std::span(text).subspan(5)), "the first");
  expect_same_bits(all, take_answer(placed.runtime, text, SequenceId(1)), "the second");
}

TEST_P(DeviceStates, TakeTheMemoryAndKeepThePointsThatTheCpuDoes) {
  Placed placed(model, place());
  ExpertRuntime& runtime = placed.runtime;
  EXPECT_TRUE(runtime.keeps_points());
  const uint64_t priced = runtime.price().vram.state + runtime.price().host.state;
  EXPECT_EQ(round_up(runtime.state_bytes(), policy::kTensorAlignment),
            round_up(priced, policy::kTensorAlignment));
  EXPECT_GT(runtime.price().vram.state, 0u);
  take_prompt(runtime, random_tokens(20, 13));
  take_answer(runtime, random_tokens(60, 14));
  EXPECT_EQ(runtime.kept_tokens({}, 79), 79);
  EXPECT_EQ(runtime.kept_tokens({}, 64), 64);
  EXPECT_EQ(runtime.kept_tokens({}, 51), 20);
  runtime.truncate({}, 70);
  EXPECT_GT(runtime.went_back().n_replayed, 0);
  EXPECT_EQ(runtime.went_back().n_computed, 0);
  runtime.truncate({}, 40);
  EXPECT_EQ(runtime.n_tokens({}), 40);
  EXPECT_EQ(runtime.went_back().n_computed, 20);
}

// Room for all else, too.
DeviceOptions half_of_the_experts(const OpenModel& model) {
  const policy::ModelShape shape = model.shape();
  const policy::Placement none{3, {0, 0, 0}, 0, 0.0};
  DeviceOptions d;
  d.kind = DeviceKind::sim;
  d.moe = ExpertPlace::cache;
  d.sim.machine.link_gbps = 10.0;
  d.sim.machine.vram_free =
      policy::price(shape, {.n_ctx = 128, .prefill_chunk = 32}, none).vram.total() +
      shape.expert_bytes() / 2;
  return d;
}

// Of a session, with the points that a chat asks for; on the device's clock or on the wall's.
TEST(DeviceStates, ASessionOnTheSimulatedDeviceAnswersAsOnTheCpu) {
  const std::vector<TokenId> prompt = random_tokens(60, 16);
  for (const char* architecture : model::test::kHybrids) {
    const OpenModel hybrid(architecture, "Q8_0");
    const sluice::Model loaded = sluice::Model::load(hybrid.path(), {.n_threads = 2});
    Session on_cpu(loaded, {.n_ctx = 128, .prefill_chunk = 32});
    const auto expected = on_cpu.generate(prompt, {.n_tokens = 12}, {}).tokens;
    for (const bool is_virtual : {false, true}) {
      SessionOptions options{.n_ctx = 128, .prefill_chunk = 32};
      options.device = half_of_the_experts(hybrid);
      options.device.sim.is_virtual = is_virtual;
      Session session(loaded, options);
      EXPECT_GT(session.placement().n_gpu_layers, 0);
      GenerateOptions asked{.n_tokens = 12};
      asked.prompt.keep_at = {10, 33};
      EXPECT_EQ(session.generate(prompt, asked, {}).tokens, expected) << architecture;
      EXPECT_EQ(session.kept_tokens(32), 10);
      session.truncate(33);
      EXPECT_EQ(session.generate(std::span(prompt).subspan(33), asked, {}).tokens, expected);
    }
  }
}

}  // namespace
}  // namespace sluice::engine::test
