// What a dialogue computes anew and what it takes from its session, above all after an answer that
// failed halfway: whatever happened before, an answer is that of the whole conversation.
// SPDX-License-Identifier: Apache-2.0
#include "chat/dialogue.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "base/error.h"
#include "unit/chat/demo.h"

namespace sluice::chat {
namespace {

constexpr int kChunk = 8;
const SessionOptions kSmallChunks = {.prefill_chunk = kChunk};
const std::string kQuestion = "What is 17 + 25?";
const std::string kOther = "What is the capital of France?";

Answer fresh_answer(const std::string& message) { return Talk().ask(message); }

TEST(Dialogue, ComputesOnlyWhatTheSessionDoesNotHold) {
  Talk talk;
  const Answer first = talk.ask(kQuestion);
  EXPECT_EQ(first.text, "17 + 25 = 42.");
  const Answer second = talk.ask(kOther);
  EXPECT_LT(second.n_prompt, first.n_prompt + fresh_answer(kOther).n_prompt);
  talk.dialogue.conversation().clear();
  const Answer again = talk.ask(kQuestion);
  EXPECT_EQ(again.text, first.text);
  EXPECT_EQ(again.n_prompt, 1u);  // only to know what follows
}

// A step that fails in the second chunk of a prompt has computed the first.
void expect_right_after(const Listener& failing, SessionOptions options = kSmallChunks) {
  const Answer expected = fresh_answer(kQuestion);
  ASSERT_GT(expected.n_prompt, 2u * kChunk) << "the prompt must have a chunk behind the failure";
  Talk talk(options);
  EXPECT_THROW(talk.ask(kQuestion, failing), std::runtime_error);
  EXPECT_EQ(talk.session.n_tokens(), kChunk);
  const Answer after = talk.ask(kQuestion);
  EXPECT_EQ(after.tokens, expected.tokens) << after.text;
  EXPECT_EQ(after.n_prompt, expected.n_prompt - kChunk);
  EXPECT_EQ(talk.dialogue.conversation().messages().size(), 2u) << "the failed message is no part";
}

TEST(Dialogue, GoesOnAfterAPromptThatFailedInTheMidstOfAChunk) {
  expect_right_after({.on_progress = [](int n_done, int /*n_total*/) {
    if (n_done > kChunk) throw std::runtime_error("in the second chunk");
  }});
}

TEST(Dialogue, GoesOnAfterAPromptThatFailedBetweenTwoChunks) {
  int n_asked = 0;
  expect_right_after({.interrupted = [&]() -> bool {
    if (++n_asked == 2) throw std::runtime_error("before the second chunk");
    return false;
  }});
}

TEST(Dialogue, GoesOnWithAnotherMessageAfterOneThatFailed) {
  // What was held before, what the failed prompt added and what comes now differ from each other.
  Talk talk(kSmallChunks);
  talk.ask(kOther);
  EXPECT_THROW(talk.ask(std::string(200, 'x') + kOther, {.on_progress =
                                                             [](int n_done, int /*n_total*/) {
                                                               if (n_done > 3 * kChunk)
                                                                 throw std::runtime_error("late");
                                                             }}),
               std::runtime_error);
  const Answer after = talk.ask(kQuestion);

  Talk whole(kSmallChunks);
  whole.ask(kOther);
  EXPECT_EQ(after.tokens, whole.ask(kQuestion).tokens) << after.text;
}

TEST(Dialogue, GoesOnAfterAnAnswerThatFailed) {
  const Answer expected = fresh_answer(kQuestion);
  Talk talk;
  size_t n_texts = 0;
  EXPECT_THROW(talk.ask(kQuestion, {.on_text =
                                        [&](bool, std::string_view) {
                                          if (++n_texts == 3) throw std::runtime_error("full disk");
                                        }}),
               std::runtime_error);
  const Answer after = talk.ask(kQuestion);
  EXPECT_EQ(after.tokens, expected.tokens);
  EXPECT_EQ(after.n_prompt, 1u);
}

TEST(Dialogue, GoesOnAfterAPromptThatWasInterrupted) {
  const Answer expected = fresh_answer(kQuestion);
  Talk talk(kSmallChunks);
  int n_asked = 0;
  const Answer stopped = talk.ask(kQuestion, {.interrupted = [&] { return ++n_asked == 2; }});
  EXPECT_TRUE(stopped.was_interrupted());
  EXPECT_TRUE(stopped.tokens.empty());
  EXPECT_TRUE(talk.dialogue.conversation().messages().empty());
  const Answer after = talk.ask(kQuestion);
  EXPECT_EQ(after.tokens, expected.tokens);
  EXPECT_EQ(after.n_prompt, expected.n_prompt - kChunk);
}

TEST(Dialogue, KeepsAnAnswerThatWasInterruptedAsFarAsItCame) {
  Talk talk;
  bool stop = false;
  const Answer cut = talk.ask(kQuestion, {.on_text = [&](bool, std::string_view) { stop = true; },
                                          .interrupted = [&] { return stop; }});
  EXPECT_TRUE(cut.was_interrupted());
  const auto messages = talk.dialogue.conversation().messages();
  ASSERT_EQ(messages.size(), 2u);
  EXPECT_EQ(messages[1]["content"], cut.text);
  EXPECT_TRUE(fresh_answer(kQuestion).text.starts_with(cut.text));
}

TEST(Dialogue, TellsHowFarThePromptIs) {
  std::vector<int> seen;
  int total = 0;
  Talk talk(kSmallChunks);
  const Answer answer = talk.ask(kQuestion, {.on_progress = [&](int n_done, int n_total) {
                                   seen.push_back(n_done);
                                   total = n_total;
                                 }});
  EXPECT_EQ(static_cast<size_t>(total), answer.n_prompt);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), total);
}

TEST(Dialogue, RefusesAPromptThatTheContextCannotHoldAndIsAsBefore) {
  Talk talk({.n_ctx = 64});
  EXPECT_THROW(talk.ask(std::string(500, 'x')), Error);
  EXPECT_THROW(talk.ask("\xff"), Error);
  EXPECT_TRUE(talk.dialogue.conversation().messages().empty());
  EXPECT_EQ(talk.ask(kQuestion).text, "17 + 25 = 42.");
}

}  // namespace
}  // namespace sluice::chat
