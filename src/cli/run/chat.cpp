// See chat.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/chat.h"

#include <cstdio>
#include <utility>

#include "base/error.h"
#include "cli/terminal/progress_bar.h"
#include "cli/terminal/style.h"
#include "cli/terminal/terminal_text.h"

namespace sluice::cli {
namespace {

constexpr const char* kBlanks = " \t\r\n";

void print_speed(const chat::Answer& answer) {
  std::fprintf(stderr, "%s\n", dimmed_on_stderr(cat("[", describe(answer), "]")).c_str());
}

}  // namespace

Chat::Chat(const chat::Responder& with, ChatOptions options)
    : session_(with.session),
      chooser_(with.chooser),
      options_(std::move(options)),
      dialogue_(with, options_.dialogue),
      prompt_cache_(options_.prompt_cache) {
  dialogue_.conversation().set_system(options_.system);
  if (prompt_cache_.is_on()) load_prompt_cache();
}

void Chat::load_prompt_cache() {
  try {
    if (auto tokens = prompt_cache_.load(session_)) dialogue_.set_held(*std::move(tokens));
  } catch (...) {
    if (session_.n_tokens() == 0) dialogue_.set_held({});
    throw;
  }
}

chat::Answer Chat::print_answer(const Asking& asking) {
  AnswerPrinter printer(options_.show_thinking, options_.wrap);
  PromptBar bar;
  interrupts_.forget();
  chat::Listener listener{
      .on_text =
          [&](bool is_thinking, std::string_view text) {
            if (!options_.quiet) printer.print(is_thinking, text);
          },
      .interrupted = [&] { return interrupts_.was_pressed() || std::ferror(stdout) != 0; },
      .on_progress = bar.updater()};
  if (prompt_cache_.is_on() && !is_chat_) {
    listener.on_read = [&](std::span<const TokenId> prompt, size_t n_held) {
      prompt_cache_.prompt_was_read(session_, prompt, n_held);
    };
  }
  last_answer_ = asking(dialogue_, listener);
  ++n_answers_;
  n_tokens_ += last_answer_->tokens.size();
  decode_seconds_ += last_answer_->first_token_seconds + last_answer_->decode_seconds;
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

void Chat::ask_and_tell(const std::string& message) {
  print_speed(ask(attached_.empty() ? message : cat(message, "\n\n", attached_)));
  attached_.clear();
  if (dialogue_.n_left_out() == 0 || said_left_out_) return;
  said_left_out_ = true;
  print_note(cat("the context of ", session_.n_ctx(), " tokens is full: the oldest ",
                 dialogue_.n_left_out(),
                 " messages are left out of what the model sees, more as the chat goes on (/stats "
                 "counts them)"));
}

void Chat::take_input(const LineEditor::Input& input) {
  if (!input.text.starts_with('/') || input.is_block) {
    ask_and_tell(input.text);
  } else if (input.text.starts_with("//")) {
    ask_and_tell(input.text.substr(1));
  } else {
    command(input.text);
  }
}

void Chat::run(LineEditor& editor) {
  is_chat_ = true;
  converse(editor);
  if (prompt_cache_.is_on() && session_.n_tokens() > 0) {
    prompt_cache_.save(session_, dialogue_.held());
  }
}

void Chat::converse(LineEditor& editor) {
  is_terminal_ = editor.is_terminal();
  editor.set_completer(&Chat::completions);
  while (!ends_) {
    interrupts_.forget();  // meant for the answer, which has been printed
    const LineEditor::Input input = editor.read("> ", std::exchange(to_edit_, ""));
    if (input.outcome == LineEditor::Outcome::end) return;
    interrupts_.forget();  // meant for what was being typed
    if (input.outcome == LineEditor::Outcome::interrupted) {
      if (input.was_empty && !std::exchange(said_how_to_end_, true)) {
        std::fprintf(stderr, "%s\n", dimmed_on_stderr("(Ctrl-D or /quit ends the chat)").c_str());
      }
      continue;
    }
    if (input.text.find_first_not_of(kBlanks) == std::string::npos) continue;
    try {
      take_input(input);
    } catch (const Error& error) {
      ++n_failed_;
      print_error(error.what());
    }
    if (std::ferror(stdout)) return;  // the output is lost; main() reports it
  }
}

}  // namespace sluice::cli
