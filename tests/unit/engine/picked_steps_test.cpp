// Steps that tell the best logits alone: the same tokens as by all of them, wherever they are
// computed, and hardly a byte from the device.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "engine/step/text_steps.h"
#include "sampler/greedy.h"
#include "unit/engine/placed_model.h"

namespace sluice::engine::test {
namespace {

using backend::PickedRow;

// Rows that want all logits, the best, both or nothing, in one step, narrow or wide.
TEST(PickedSteps, EveryRowGetsWhatItWants) {
  const OpenModel model("qwen3moe", "Q8_0");
  const std::vector<TokenId> tokens = text(40);
  const auto n_vocab = static_cast<size_t>((*model).config().n_vocab);
  const Logits expected = run_alone(*model, tokens);
  for (const size_t n_rows : {11, 40}) {
    Placed placed(model, {.share = 0.3});
    std::vector<StepRow> rows;
    for (size_t r = 0; r < n_rows; ++r) {
      rows.push_back({tokens[r], {}, r % 4 == 1 || r % 4 == 3, r % 4 >= 2 ? 5 : 0});
    }
    std::vector<int64_t> told, picked;
    StepListener listener;
    listener.on_logits = [&](int64_t row, std::span<const float> logits) {
      told.push_back(row);
      EXPECT_TRUE(std::ranges::equal(
          logits, std::span(expected).subspan(static_cast<size_t>(row) * n_vocab, n_vocab)));
    };
    listener.on_pick = [&](int64_t row, const PickedRow& pick) {
      picked.push_back(row);
      PickedRow best{};
      backend::pick_best(std::span(expected).subspan(static_cast<size_t>(row) * n_vocab, n_vocab),
                         5, best);
      ASSERT_EQ(pick.n_best, 5);
      EXPECT_TRUE(pick.is_finite);
      for (int i = 0; i < 5; ++i) EXPECT_EQ(pick.best[i].token, best.best[i].token);
    };
    placed.runtime.step(rows, policy::Phase::prefill, listener);
    for (int64_t r = 0; r < std::ssize(rows); ++r) {
      EXPECT_EQ(std::ranges::count(told, r), r % 2) << r;
      EXPECT_EQ(std::ranges::count(picked, r), r % 4 >= 2) << r;
    }
  }
}

// 64 tokens that follow from each other, on the device by the best, on the CPU by all logits.
TEST(PickedSteps, AGreedyTokenMovesFourKilobytesAtMostAndIsTheSame) {
  const OpenModel model("qwen3moe", "Q4_K_M");
  Placed placed(model, {.share = 0.3, .n_ctx = 96});
  Runner alone(*model);
  TokenId token = 7;
  const uint64_t before = placed.device.bytes_out();
  for (int i = 0; i < 64; ++i) {
    Logits logits;
    const StepRow whole[] = {{token, {}, true}}, best_alone[] = {{token, {}, false, 1}};
    Logits* const outs[] = {&logits};
    alone.step(whole, outs);
    TokenId best = -1;
    StepListener listener;
    listener.on_pick = [&](int64_t, const PickedRow& pick) { best = pick.best[0].token; };
    placed.runtime.step(best_alone, policy::Phase::decode, listener);
    EXPECT_EQ(best, sampler::greedy(logits));
    token = best;
  }
  // Nothing by copies; besides, a row of the best in mapped memory.
  EXPECT_EQ(placed.device.bytes_out() - before, 0u);
  EXPECT_LE(sizeof(PickedRow), 4096u);
}

// After tokens of which only the best is known, all logits of the newest can still be had.
TEST(PickedSteps, AllLogitsOfTheNewestTokenCanBeHadLater) {
  const OpenModel model("qwen3moe", "Q8_0");
  const std::vector<TokenId> tokens = text(20);
  const Logits expected = run_alone(*model, tokens);
  std::vector<TokenId> routed;
  ThreadPool pool(1);
  TextSteps steps(std::make_unique<Stepper>(*model, backend::make_cpu_ops(pool),
                                            KvOptions{.n_sequences = 1, .n_ctx = 64}, 16),
                  "m", [&](const RoutedToken& t) { routed.push_back(t.token); });
  steps.prefill(std::span(tokens).first(18), {}, {});
  for (const TokenId token : std::span(tokens).subspan(18)) {
    steps.decode(token, TextSteps::Known::best);
  }
  const auto n_vocab = static_cast<size_t>((*model).config().n_vocab);
  const auto last = std::span(expected).last(n_vocab);
  EXPECT_EQ(steps.best_token(), sampler::greedy(last));
  EXPECT_TRUE(std::ranges::equal(steps.last_logits(), last));
  EXPECT_EQ(steps.n_tokens(), 20);
  EXPECT_EQ(routed, tokens);  // nobody hears of a token twice
}

}  // namespace
}  // namespace sluice::engine::test
