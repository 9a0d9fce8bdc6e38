// Steps of whole models, bit for bit: how a text is divided into steps, what else is in a step,
// what was there before and how many threads work must not show in its logits.
// SPDX-License-Identifier: Apache-2.0
#include "engine/step/stepper.h"

#include <gtest/gtest.h>

#include <set>

#include "unit/engine/run_model.h"

namespace sluice::engine::test {
namespace {

using policy::Phase;
using quant::Type;

constexpr size_t kVocab = 261;

class StepperTest : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  OpenModel model_{std::get<0>(GetParam()), std::get<1>(GetParam())};
};

std::string case_name(const testing::TestParamInfo<StepperTest::ParamType>& info) {
  return std::string(std::get<0>(info.param)) + "_" + std::get<1>(info.param);
}

INSTANTIATE_TEST_SUITE_P(Models, StepperTest,
                         testing::Combine(testing::ValuesIn(model::test::kArchitectures),
                                          testing::Values("F32", "Q8_0", "Q4_K_M")),
                         case_name);

TEST_P(StepperTest, LogitsAreFiniteAndDependOnAllThatCameBefore) {
  std::vector<TokenId> tokens = random_tokens(7, 1);
  const Logits before = run_alone(*model_, tokens);
  ASSERT_EQ(before.size(), tokens.size() * kVocab);
  for (const float l : before) ASSERT_TRUE(std::isfinite(l)) << l;
  tokens[3] = (tokens[3] + 1) % 261;
  const Logits after = run_alone(*model_, tokens);
  for (size_t p = 0; p < tokens.size(); ++p) {
    const auto first = static_cast<std::ptrdiff_t>(p * kVocab);
    const bool same =
        std::equal(before.begin() + first, before.begin() + first + kVocab, after.begin() + first);
    EXPECT_EQ(same, p < 3) << "position " << p;
  }
}

TEST_P(StepperTest, PrefillInChunksOfAnySizeGivesTheSameBits) {
  const std::vector<TokenId> tokens = random_tokens(66, 2);
  const Logits expected = run_alone(*model_, tokens, 1);
  for (const size_t chunk : {7, 64}) {
    expect_same_bits(expected, run_alone(*model_, tokens, chunk),
                     "chunks of " + std::to_string(chunk));
  }
}

TEST_P(StepperTest, NoNumberOfThreadsAndNoPageSizeChangesABit) {
  const std::vector<TokenId> tokens = random_tokens(10, 3);
  const Logits expected = run_alone(*model_, tokens);
  expect_same_bits(expected, run_alone(*model_, tokens), "a second run");
  for (const int n_threads : {1, 3, 5}) {
    expect_same_bits(expected, run_alone(*model_, tokens, 64, {.n_threads = n_threads}),
                     std::to_string(n_threads) + " threads");
  }
  for (const int page_tokens : {1, 7, 64}) {
    const KvOptions kv{.n_sequences = 1, .n_ctx = 11, .page_tokens = page_tokens};
    expect_same_bits(expected, run_alone(*model_, tokens, 64, {.kv = kv}),
                     "pages of " + std::to_string(page_tokens));
  }
}

// Three texts of 5, 23 and 12 tokens; each step takes one to four rows of whoever is next.
TEST_P(StepperTest, SeveralSequencesInOneStepEqualEachAlone) {
  const std::vector<std::vector<TokenId>> texts = {random_tokens(5, 4), random_tokens(23, 5),
                                                   random_tokens(12, 6)};
  Runner runner(*model_, {.kv = {.n_sequences = 3, .n_ctx = 32, .page_tokens = 4}});
  std::vector<Logits> got(3);
  std::vector<size_t> done(3, 0);
  uint64_t draw = 0;
  while (done != std::vector<size_t>{5, 23, 12}) {
    std::vector<StepRow> rows;
    std::vector<Logits*> outs;
    const size_t first = random_bits(7, draw) % 3;
    for (size_t s : {first, (first + 1) % 3, (first + 2) % 3}) {
      for (uint64_t n = random_bits(8, draw++) % 4; n > 0 && done[s] < texts[s].size(); --n) {
        rows.push_back({texts[s][done[s]++], SequenceId(static_cast<int32_t>(s)), true});
        outs.push_back(&got[s]);
      }
    }
    if (!rows.empty()) runner.step(rows, outs);
  }
  for (size_t s = 0; s < 3; ++s) {
    EXPECT_EQ(runner.stepper().n_tokens(SequenceId(static_cast<int32_t>(s))), std::ssize(texts[s]));
    expect_same_bits(run_alone(*model_, texts[s]), got[s], "sequence " + std::to_string(s));
  }
}

TEST_P(StepperTest, TruncatingAndGoingOnEqualsAFreshText) {
  const std::vector<TokenId> tokens = random_tokens(20, 9), others = random_tokens(6, 10);
  const RunOptions options{.kv = {.n_sequences = 1, .n_ctx = 26, .page_tokens = 8}};
  for (const int keep : {0, 1, 7, 8, 9, 20}) {
    Runner runner(*model_, options);
    runner.append(tokens, 64);
    runner.stepper().truncate({}, keep);
    ASSERT_EQ(runner.stepper().n_tokens({}), keep);
    const Logits got = runner.append(others, 64);

    std::vector<TokenId> fresh(tokens.begin(), tokens.begin() + keep);
    fresh.insert(fresh.end(), others.begin(), others.end());
    const Logits expected = run_alone(*model_, fresh);
    expect_same_bits(std::span(expected).subspan(static_cast<size_t>(keep) * kVocab), got,
                     "after " + std::to_string(keep));
  }
}

// Two steppers take turns on one model: neither sees the other.
TEST_P(StepperTest, SteppersOfOneModelDoNotMeet) {
  const std::vector<TokenId> a = random_tokens(20, 11), b = random_tokens(20, 12);
  Runner first(*model_), second(*model_, {.n_threads = 1});
  Logits got_a, got_b;
  for (size_t i = 0; i < 20; ++i) {
    first.step(std::vector<StepRow>{{a[i], {}, true}}, std::vector<Logits*>{&got_a});
    second.step(std::vector<StepRow>{{b[i], {}, true}}, std::vector<Logits*>{&got_b});
  }
  expect_same_bits(run_alone(*model_, a), got_a, "the first");
  expect_same_bits(run_alone(*model_, b), got_b, "the second");
}

// The same promises for every type of cache, on one model.
TEST(StepperKvTypes, HoldForEveryTypeOfCache) {
  const OpenModel model("qwen3moe", "F32");
  const std::vector<TokenId> tokens = random_tokens(33, 13);
  std::set<Logits> seen;
  for (const Type type : {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_0}) {
    const std::string name(quant::type_name(type));
    const RunOptions options{
        .kv = {.k_type = type, .v_type = type, .n_sequences = 2, .n_ctx = 40, .page_tokens = 8}};
    const Logits expected = run_alone(*model, tokens, 1, options);
    expect_same_bits(expected, run_alone(*model, tokens, 33, options), name + " in one chunk");
    Runner runner(*model, options);
    runner.append(random_tokens(9, 14), 4, SequenceId(1));
    runner.append(tokens, 5);
    runner.stepper().truncate({}, 10);
    const Logits got = runner.append(std::span(tokens).subspan(10), 7);
    expect_same_bits(std::span(expected).subspan(10 * kVocab), got, name + " cut and filled again");
    EXPECT_TRUE(seen.insert(expected).second) << name << ": the type does nothing";
  }
}

// More rows than are computed at a time (16), and some that nobody wants.
TEST(StepperLogits, ComeInOrderForTheRowsThatWantThem) {
  const OpenModel model("llama", "F32");
  const std::vector<TokenId> tokens = random_tokens(50, 15);
  const Logits all = run_alone(*model, tokens);
  Runner runner(*model);
  std::vector<StepRow> rows;
  std::vector<int64_t> expected, got;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool wants = i % 5 != 0 || i == 45;
    rows.push_back({tokens[i], {}, wants});
    if (wants) expected.push_back(static_cast<int64_t>(i));
  }
  ASSERT_GT(expected.size(), 2u * kMaxLogitRows);
  const auto expect_row = [&](int64_t row, std::span<const float> logits) {
    got.push_back(row);
    expect_same_bits(std::span(all).subspan(static_cast<size_t>(row) * kVocab, kVocab), logits,
                     "row " + std::to_string(row));
  };
  runner.stepper().step(rows, Phase::prefill, {expect_row});
  EXPECT_EQ(got, expected);
  runner.stepper().step(
      std::vector<StepRow>{{1, {}, false}}, Phase::decode,
      {[](int64_t, std::span<const float>) { ADD_FAILURE() << "nobody asked for logits"; }});
  EXPECT_EQ(runner.stepper().n_tokens({}), 51);
}

// Of each sequence, and of the pages that it had taken.
TEST(StepperFaults, AStepThatThrowsTakesBackItsRows) {
  const OpenModel model("qwen3moe", "Q8_0");
  const std::vector<TokenId> tokens = random_tokens(12, 21);
  const Logits all = run_alone(*model, tokens);
  Runner runner(*model, {.kv = {.n_sequences = 3, .n_ctx = 16, .page_tokens = 4}});
  for (int s = 0; s < 3; ++s) {
    runner.append(std::span(tokens).first(static_cast<size_t>(s + 2)), 8, SequenceId(s));
  }
  const std::vector<StepRow> rows = {{1, SequenceId(2), true},
                                     {2, SequenceId(2), true},
                                     {3, SequenceId(0), false},
                                     {4, SequenceId(0), false}};
  const auto refuse = [](int64_t, std::span<const float>) { throw std::runtime_error("no"); };
  for (int i = 0; i < 20; ++i) {  // more often than there are pages
    EXPECT_THROW(runner.stepper().step(rows, Phase::prefill, {refuse}), std::runtime_error);
  }
  for (int s = 0; s < 3; ++s) {
    const auto held = static_cast<size_t>(s + 2);
    EXPECT_EQ(runner.stepper().n_tokens(SequenceId(s)), s + 2);
    expect_same_bits(std::span(all).subspan(held * kVocab),
                     runner.append(std::span(tokens).subspan(held), 5, SequenceId(s)),
                     "sequence " + std::to_string(s));
  }
}

TEST(StepperDeathTest, StopsAtRowsOfASequenceThatStandApart) {
  const OpenModel model("qwen3moe", "Q8_0");
  Runner runner(*model, {.n_threads = 1, .kv = {.n_sequences = 2, .n_ctx = 16, .page_tokens = 4}});
  const std::vector<StepRow> rows = {
      {1, SequenceId(0), true}, {2, SequenceId(1), true}, {3, SequenceId(0), true}};
  EXPECT_DEATH(runner.stepper().step(rows, Phase::prefill, {}), "is_first");
}

TEST(StepperDeathTest, StopsAtAStepOfNothingOrTooMuch) {
  const OpenModel model("llama", "F32");
  Runner runner(*model, {.n_threads = 1, .max_rows = 2});
  const std::vector<StepRow> rows(3);
  EXPECT_DEATH(runner.stepper().step({}, Phase::decode, {}), "CHECK");
  EXPECT_DEATH(runner.stepper().step(rows, Phase::decode, {}), "CHECK");
  EXPECT_DEATH(runner.stepper().truncate({}, 1), "CHECK");
}

}  // namespace
}  // namespace sluice::engine::test
