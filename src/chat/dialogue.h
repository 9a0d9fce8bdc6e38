// A person and a model in turn: the conversation so far, and how much of it the session has
// computed already. A prompt mostly begins as the text before did: only what differs is computed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chat/answer.h"
#include "chat/conversation.h"

namespace sluice::chat {

struct DialogueOptions {
  AnswerOptions answer;
  std::optional<bool> enable_thinking;  // unset: as the template decides
  TextModel::Messages messages = TextModel::Messages::text;

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

 private:
  Answer answer_to(Conversation asked, const Listener& listener);
  Answer answer(const Prompt& prompt, const AnswerOptions& options, const Listener& listener);
  size_t keep_common(const std::vector<TokenId>& prompt);

  Responder with_;
  DialogueOptions options_;
  Conversation conversation_;
  std::vector<TokenId> held_;  // the session's text
};

}  // namespace sluice::chat
