// What a dialogue computes anew with a model whose layers are recurrent, and cannot simply be cut
// back: from the last message that stayed as it was, never from the beginning.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/chat/demo.h"

namespace sluice::chat {
namespace {

const Model& hybrid_model() {
  static const Model model = Model::load(find_model("demo-hybrid"), {.n_threads = 1});
  return model;
}

const TextModel& hybrid_text() {
  static const TextModel text(hybrid_model().info().path, TextModel::Use::chat);
  return text;
}

class HybridTalk {
 public:
  explicit HybridTalk(std::optional<bool> thinking = {}) {
    DialogueOptions options;
    options.enable_thinking = thinking;
    options.answer.n_tokens = 100;
    options.on_prompt = [this](const std::string&, size_t n) { n_prompt_ = n; };
    dialogue_.emplace(Responder{session_, hybrid_text(), chooser_}, options);
  }

  Answer ask(const std::string& message) { return counted(dialogue_->ask(message, listener_)); }
  Answer regenerate() { return counted(dialogue_->regenerate(listener_)); }
  Conversation& conversation() { return dialogue_->conversation(); }
  Session& session() { return session_; }
  size_t n_prompt() const { return n_prompt_; }  // tokens of the last prompt, held ones included

 private:
  // What an answer says it computed is what the session computed: nothing more to go back.
  Answer counted(Answer answer) {
    n_computed_ += static_cast<int64_t>(answer.n_prompt);
    EXPECT_EQ(session_.stats().n_prefill_tokens, n_computed_);
    EXPECT_EQ(session_.stats().n_recomputed_tokens, 0);
    return answer;
  }

  int64_t n_computed_ = 0;
  Session session_{hybrid_model(), {.n_ctx = 6000}};
  Chooser chooser_{resolve_sampling({.temp = 0.0f, .seed = 1}, hybrid_text()),
                   hybrid_text().tokenizer().n_tokens(), nullptr};
  Listener listener_{.on_text = [](bool, std::string_view) {}};
  size_t n_prompt_ = 0;
  std::optional<Dialogue> dialogue_;
};

// "<|im_start|>assistant\n" and an empty thinking block.
constexpr size_t kMostBehindLastMessage = 12;

std::string long_message() {
  std::string text = "Count:";
  for (int i = 0; i < 1400; ++i) text += " " + std::to_string(i % 7) + ",";
  return text;
}

std::string sum(int i) { return "What is " + std::to_string(11 + i) + " + 25?"; }

TEST(HybridDialogue, AFollowUpGoesOnWhereTheAnswerEnded) {
  HybridTalk talk;
  talk.ask(sum(0));
  for (int i = 1; i < 4; ++i) {
    const auto n_held = static_cast<size_t>(talk.session().n_tokens());
    const Answer answer = talk.ask(sum(i));
    EXPECT_EQ(answer.n_prompt, talk.n_prompt() - n_held) << "follow-up " << i;
  }
}

// The answers to a text that is far longer than any in training are no words, and as a prompt their
// tokens are others: then the last answer is computed again, and nothing before it.
TEST(HybridDialogue, AFollowUpNeverGoesBackBehindTheLastQuestion) {
  HybridTalk talk;
  talk.ask(long_message());
  ASSERT_GE(talk.n_prompt(), 4000u);
  for (int i = 0; i < 10; ++i) {
    const size_t n_before = talk.n_prompt();
    const Answer answer = talk.ask(sum(i));
    EXPECT_LE(answer.n_prompt, talk.n_prompt() - n_before + kMostBehindLastMessage) << i;
  }
}

TEST(HybridDialogue, AnAnswerIsMadeAgainFromTheEndOfTheQuestion) {
  HybridTalk talk;
  talk.ask(long_message());
  for (int i = 0; i < 10; ++i) {
    const Answer first = talk.ask(sum(i));
    for (int k = 0; k < 2; ++k) {
      const Answer again = talk.regenerate();
      EXPECT_EQ(again.tokens, first.tokens);
      EXPECT_LE(again.n_prompt, kMostBehindLastMessage);
    }
  }
}

// The template shows no thoughts of earlier answers, so that the prompt differs from the text
// behind the last question.
TEST(HybridDialogue, ThoughtsThatAreLeftOutCostTheLastAnswerAlone) {
  HybridTalk talk(true);
  Answer last = talk.ask(long_message());
  for (int i = 0; i < 10; ++i) {
    EXPECT_FALSE(last.thinking.empty()) << "before follow-up " << i;
    const size_t n_before = talk.n_prompt();
    const Answer answer = last = talk.ask(sum(i));
    EXPECT_LE(answer.n_prompt, talk.n_prompt() - n_before + kMostBehindLastMessage) << i;
  }
  HybridTalk fresh(true);
  fresh.conversation() = talk.conversation();
  EXPECT_EQ(fresh.ask(sum(10)).tokens, talk.ask(sum(10)).tokens);
}

// Another question in the place of the last: from the end of the answer before it.
TEST(HybridDialogue, AnEditedQuestionIsComputedFromTheMessageBeforeIt) {
  HybridTalk talk;
  talk.ask(long_message());
  talk.ask(sum(1));
  const Conversation before = talk.conversation();
  const size_t n_before = talk.n_prompt();
  talk.ask(sum(2));
  talk.conversation() = before;
  const Answer edited = talk.ask(sum(3));
  EXPECT_LE(edited.n_prompt, talk.n_prompt() - n_before);
  HybridTalk fresh;
  fresh.conversation() = before;
  EXPECT_EQ(fresh.ask(sum(3)).tokens, edited.tokens);
}

}  // namespace
}  // namespace sluice::chat
