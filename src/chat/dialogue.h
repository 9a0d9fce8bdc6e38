// A person and a model in turn: the conversation so far, and how much of it the session has
// computed already. A prompt mostly begins as the text before did: only what differs is computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chat/answer.h"
#include "chat/conversation.h"
#include "chat/opened_prompt.h"

namespace sluice::chat {

struct DialogueOptions {
  AnswerOptions answer;
  std::optional<bool> enable_thinking;  // unset: as the template decides
  TextModel::Messages messages = TextModel::Messages::text;
  text::Json variables = text::Json::object();  // others that the chat template is given
  // Where a conversation outgrows the context, its oldest turns are left out of what the model is
  // given, until half of it is free; otherwise the next message is refused.
  bool leaves_out_oldest = false;

  // Sees what the model is given; may be empty.
  std::function<void(const std::string& prompt, size_t n_tokens)> on_prompt;
};

// Where an answer fails, or is stopped before its first token, the conversation is as before. The
// next one computes what the session does not hold.
class Dialogue {
 public:
  Dialogue(const Responder& with, DialogueOptions options);

  Answer ask(const std::string& message, const Listener& listener);
  // Answers the last message again; throws Errc::bad_request where there is none.
  Answer regenerate(const Listener& listener);
  // Continues a text as it stands; no part of the conversation.
  Answer complete(const std::string& text, const Listener& listener);

  Conversation& conversation() { return conversation_; }
  // For the next answer.
  DialogueOptions& options() { return options_; }
  // The session's text as far as it is known, and what it is when others have changed it.
  const std::vector<TokenId>& held() const { return held_; }
  void set_held(std::vector<TokenId> tokens) { held_ = std::move(tokens); }
  // Messages that the model was not given the last time.
  size_t n_left_out() const { return n_left_out_; }

 private:
  Answer answer_to(Conversation asked, const Listener& listener);
  OpenedPrompt open(const Conversation& asked);
  Answer answer(const Prompt& prompt, const AnswerOptions& options, const Listener& listener);
  size_t keep_common(const std::vector<TokenId>& prompt);

  Responder with_;
  DialogueOptions options_;
  Conversation conversation_;
  std::vector<TokenId> held_;  // the session's text
  size_t n_left_out_ = 0;
};

}  // namespace sluice::chat
