// The chat on the command line: a person types, the model answers, and a few commands steer
// (chat_commands.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chat/dialogue.h"
#include "cli/run/answer_printer.h"
#include "cli/run/prompt_cache.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/line_editor.h"

namespace sluice::cli {

struct ChatOptions {
  chat::DialogueOptions dialogue;
  std::string system;
  ShowThinking show_thinking = ShowThinking::dimmed;
  Wrap wrap = Wrap::words;
  bool verbose_prompt = false;
  bool quiet = false;  // answers are not printed as they come
  PromptCacheOptions prompt_cache;
};

class Chat {
 public:
  Chat(const chat::Responder& with, ChatOptions options);

  // Answers one message, or continues one text as it stands, printing as it comes; Ctrl-C ends the
  // answer.
  chat::Answer ask(const std::string& message);
  chat::Answer complete(const std::string& text);

  // Reads and answers until the end of input or /quit; then the prompt cache gets all of it.
  void run(LineEditor& editor);
  const PromptCache& prompt_cache() const { return prompt_cache_; }
  // Of its messages and commands, those that failed.
  int n_failed() const { return n_failed_; }

  // What a line that begins with '/' may become, for Tab.
  static std::vector<std::string> completions(const std::string& line);

 private:
  using Asking = std::function<chat::Answer(chat::Dialogue&, const chat::Listener&)>;
  chat::Answer print_answer(const Asking& asking);
  void load_prompt_cache();
  void converse(LineEditor& editor);
  void take_input(const LineEditor::Input& input);
  void ask_and_tell(const std::string& message);

  // Does a line that begins with '/'. The table in chat_commands.cpp names them.
  void command(const std::string& line);
  void help(const std::string& argument);
  void clear(const std::string& argument);
  void system(const std::string& argument);
  void retry(const std::string& argument);
  void undo(const std::string& argument);
  void edit(const std::string& argument);
  void set(const std::string& argument);
  void set_sampling(const std::string& argument);
  void think(const std::string& argument);
  void file(const std::string& argument);
  void save(const std::string& argument);
  void load(const std::string& argument);
  void stats(const std::string& argument);
  void quit(const std::string& argument);
  struct Command;
  static const Command kCommands[];

  Session& session_;
  chat::Chooser& chooser_;
  ChatOptions options_;
  InterruptGuard interrupts_;
  chat::Dialogue dialogue_;
  PromptCache prompt_cache_;
  bool is_chat_ = false;  // more than one prompt
  std::optional<chat::Answer> last_answer_;
  std::string attached_;      // of /file: goes with the next message
  std::string to_edit_;       // of /edit: what the next line begins with
  bool is_terminal_ = false;  // somebody types
  bool ends_ = false;
  bool said_left_out_ = false;
  bool said_how_to_end_ = false;
  int n_failed_ = 0;
  // Of this conversation.
  int n_answers_ = 0;
  size_t n_tokens_ = 0;
  double decode_seconds_ = 0.0;
};

}  // namespace sluice::cli
