// The chat: a person types, the model answers, and a few commands steer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chat/answer.h"
#include "chat/conversation.h"
#include "cli/run/answer_printer.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/line_editor.h"

namespace sluice::cli {

struct ChatOptions {
  chat::AnswerOptions answer;
  std::string system;
  std::optional<bool> enable_thinking;  // unset: as the template decides
  ShowThinking show_thinking = ShowThinking::dimmed;
  bool verbose_prompt = false;
  bool quiet = false;  // answers are not printed as they come
};

class Chat {
 public:
  Chat(const chat::TextModel& model, Session& session, chat::Chooser& chooser, ChatOptions options);

  // Answers one message, printing as it comes. Where that fails, or is stopped before the first
  // token, the conversation is as before.
  chat::Answer ask(const std::string& message);

  // Continues one text as it stands; no conversation.
  chat::Answer complete(const std::string& text);

  // Reads and answers until the end of input or /quit.
  void run(LineEditor& editor);

 private:
  chat::Answer answer_to(chat::Conversation asked);
  chat::Answer answer(const std::vector<TokenId>& prompt, const chat::AnswerOptions& options);
  void show_prompt(const std::string& text, size_t n_tokens) const;

  // Does a line that begins with '/'; false ends the chat.
  bool command(const std::string& line);
  chat::Answer regenerate();
  void print_stats() const;

  const chat::TextModel& model_;
  Session& session_;
  chat::Chooser& chooser_;
  ChatOptions options_;
  InterruptGuard interrupts_;
  chat::Conversation conversation_;
  std::vector<TokenId> held_;  // what the session has computed
  std::optional<chat::Answer> last_answer_;
};

}  // namespace sluice::cli
