// The chat: a person types, the model answers, and a few commands steer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/run/answer.h"
#include "cli/run/answer_printer.h"
#include "cli/run/conversation.h"
#include "cli/run/text_model.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/line_editor.h"

namespace sluice::cli {

struct ChatOptions {
  AnswerOptions answer;
  std::string system;
  std::optional<bool> enable_thinking;  // unset: as the template decides
  ShowThinking show_thinking = ShowThinking::dimmed;
  bool verbose_prompt = false;
  bool quiet = false;  // answers are not printed as they come
};

class Chat {
 public:
  Chat(const TextModel& model, Session& session, Chooser& chooser, ChatOptions options);

  // Answers one message, printing as it comes. Where that fails, or is stopped before the first
  // token, the conversation is as before.
  Answer ask(const std::string& message);

  // Continues one text as it stands; no conversation.
  Answer complete(const std::string& text);

  // Reads and answers until the end of input or /quit.
  void run(LineEditor& editor);

 private:
  Answer answer_to(Conversation asked);
  Answer answer(const std::vector<TokenId>& prompt, const AnswerOptions& options);
  void show_prompt(const std::string& text, size_t n_tokens) const;

  // Does a line that begins with '/'; false ends the chat.
  bool command(const std::string& line);
  Answer regenerate();
  void print_stats() const;

  const TextModel& model_;
  Session& session_;
  Chooser& chooser_;
  ChatOptions options_;
  InterruptGuard interrupts_;
  Conversation conversation_;
  std::vector<TokenId> held_;  // what the session has computed
  std::optional<Answer> last_answer_;
};

}  // namespace sluice::cli
