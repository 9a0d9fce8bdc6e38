// See chat.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/chat.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/units.h"
#include "cli/run/conversation_file.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/terminal_text.h"
#include "text/utf8.h"

namespace sluice::cli {
namespace {

constexpr const char* kHelp =
    "  /help            this text\n"
    "  /reset           begin a new conversation\n"
    "  /system [TEXT]   begin a new one with this system message, or with none\n"
    "  /regen           answer the last message again\n"
    "  /save FILE       keep the conversation\n"
    "  /load FILE       go on with a kept one\n"
    "  /stats           speed of the last answer, use of the context\n"
    "  /quit            end (also Ctrl-D)\n"
    "A line that ends in \\ goes on in the next one; \"\"\" opens and closes a block of lines.\n"
    "Ctrl-C stops an answer.\n";

void print_speed(const chat::Answer& answer) {
  std::fprintf(stderr, "[%s]\n", describe(answer).c_str());
}

// What was typed behind a command, without the spaces around it.
std::string argument_of(const std::string& line) {
  const size_t name_end = std::min(line.find(' '), line.size());
  const size_t begin = line.find_first_not_of(' ', name_end);
  if (begin == std::string::npos) return "";
  return line.substr(begin, line.find_last_not_of(' ') + 1 - begin);
}

// No shell stands between the user and a command, so "~/" is for us to know.
std::string file_path(const std::string& command, const std::string& typed) {
  if (typed.empty()) {
    throw Error(Errc::bad_request,
                cat(command, " needs the name of a file, such as ", command, " chat.json"));
  }
  const char* home = std::getenv("HOME");
  return home && typed.starts_with("~/") ? home + typed.substr(1) : typed;
}

}  // namespace

Chat::Chat(const chat::Responder& with, ChatOptions options)
    : session_(with.session), options_(std::move(options)), dialogue_(with, options_.dialogue) {
  dialogue_.conversation().set_system(options_.system);
}

chat::Answer Chat::print_answer(const Asking& asking) {
  AnswerPrinter printer(options_.show_thinking);
  PromptBar bar;
  interrupts_.take();
  const chat::Listener listener{
      .on_text =
          [&](bool is_thinking, std::string_view text) {
            if (!options_.quiet) printer.print(is_thinking, text);
          },
      .interrupted = [&] { return interrupts_.take() || std::ferror(stdout) != 0; },
      .on_progress = bar.updater()};
  last_answer_ = asking(dialogue_, listener);
  return *last_answer_;
}

chat::Answer Chat::ask(const std::string& message) {
  return print_answer([&](chat::Dialogue& dialogue, const chat::Listener& listener) {
    return dialogue.ask(message, listener);
  });
}

chat::Answer Chat::complete(const std::string& text) {
  return print_answer([&](chat::Dialogue& dialogue, const chat::Listener& listener) {
    return dialogue.complete(text, listener);
  });
}

void Chat::print_stats() const {
  if (last_answer_) std::printf("%s\n", describe(*last_answer_).c_str());
  std::printf("context: %d of %d tokens, KV cache %s\n", session_.n_tokens(), session_.n_ctx(),
              format_bytes(session_.stats().kv_bytes).c_str());
}

bool Chat::command(const std::string& line) {
  const std::string name = line.substr(0, line.find(' '));
  const std::string argument = argument_of(line);
  chat::Conversation& conversation = dialogue_.conversation();
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    std::fputs(kHelp, stdout);
  } else if (name == "/reset") {
    conversation.clear();
  } else if (name == "/system") {
    text::require_utf8(argument, "the system message");
    conversation.clear();
    conversation.set_system(argument);
  } else if (name == "/save") {
    save_conversation(conversation, file_path(name, argument));
    std::printf("%zu messages saved\n", conversation.messages().size());
  } else if (name == "/load") {
    conversation = load_conversation(file_path(name, argument));
    std::printf("%zu messages loaded\n", conversation.messages().size());
  } else if (name == "/regen") {
    print_speed(print_answer([](chat::Dialogue& dialogue, const chat::Listener& listener) {
      return dialogue.regenerate(listener);
    }));
  } else if (name == "/stats") {
    print_stats();
  } else {
    throw Error(Errc::bad_request, cat("'", name, "' is no command; /help lists them"));
  }
  std::fflush(stdout);
  return true;
}

void Chat::run(LineEditor& editor) {
  for (;;) {
    const LineEditor::Input input = editor.read("> ");
    if (input.outcome == LineEditor::Outcome::end) return;
    interrupts_.take();  // meant for what was being typed
    if (input.outcome == LineEditor::Outcome::interrupted || input.text.empty()) continue;
    try {
      if (input.text.starts_with('/') && !input.is_block) {
        if (!command(input.text)) return;
      } else {
        print_speed(ask(input.text));
      }
    } catch (const Error& error) {
      print_error(error.what());
    }
    if (std::ferror(stdout)) return;  // the output is lost; main() reports it
  }
}

}  // namespace sluice::cli
