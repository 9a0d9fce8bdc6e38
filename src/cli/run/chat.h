// The chat on the command line: a person types, the model answers, and a few commands steer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "chat/dialogue.h"
#include "cli/run/answer_printer.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/line_editor.h"

namespace sluice::cli {

struct ChatOptions {
  chat::DialogueOptions dialogue;
  std::string system;
  ShowThinking show_thinking = ShowThinking::dimmed;
  bool verbose_prompt = false;
  bool quiet = false;  // answers are not printed as they come
};

class Chat {
 public:
  Chat(const chat::Responder& with, ChatOptions options);

  // Answers one message, or continues one text as it stands, printing as it comes; Ctrl-C ends the
  // answer.
  chat::Answer ask(const std::string& message);
  chat::Answer complete(const std::string& text);

  // Reads and answers until the end of input or /quit.
  void run(LineEditor& editor);

 private:
  using Asking = std::function<chat::Answer(chat::Dialogue&, const chat::Listener&)>;
  chat::Answer print_answer(const Asking& asking);

  // Does a line that begins with '/'; false ends the chat.
  bool command(const std::string& line);
  void print_stats() const;

  Session& session_;
  ChatOptions options_;
  InterruptGuard interrupts_;
  chat::Dialogue dialogue_;
  std::optional<chat::Answer> last_answer_;
};

}  // namespace sluice::cli
