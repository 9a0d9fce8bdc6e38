// See chat.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/run/chat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "base/error.h"
#include "base/units.h"
#include "cli/files/text_file.h"
#include "cli/run/conversation_file.h"
#include "cli/terminal/terminal_text.h"
#include "text/thinking.h"

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

Chat::Chat(const chat::TextModel& model, Session& session, chat::Chooser& chooser,
           ChatOptions options)
    : model_(model), session_(session), chooser_(chooser), options_(std::move(options)) {
  conversation_.set_system(options_.system);
}

void Chat::show_prompt(const std::string& text, size_t n_tokens) const {
  if (!options_.verbose_prompt) return;
  const std::string shown = isatty(STDERR_FILENO) == 1 ? harmless(text) : text;
  std::fprintf(stderr, "--- prompt, %zu tokens\n", n_tokens);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  std::fputs("\n---\n", stderr);
}

// A prompt mostly begins as the session's text does: only what differs is computed.
chat::Answer Chat::answer(const std::vector<TokenId>& prompt, const chat::AnswerOptions& options) {
  if (prompt.empty())
    throw Error(Errc::bad_request, "the prompt has no tokens; expected some text");
  if (prompt.size() > static_cast<size_t>(session_.n_ctx())) {
    throw Error(Errc::bad_request,
                cat("the prompt has ", prompt.size(), " tokens and the context holds ",
                    session_.n_ctx(), "; shorten it (in a chat: /reset) or ask for more with -c"));
  }
  const auto differ = std::ranges::mismatch(held_, prompt);
  auto n_held = static_cast<size_t>(differ.in1 - held_.begin());
  if (n_held == prompt.size()) --n_held;  // one must be computed to know what follows
  held_.clear();
  session_.truncate(static_cast<int>(n_held));

  AnswerPrinter printer(options_.show_thinking);
  interrupts_.take();
  const chat::Listener listener{[&](bool is_thinking, std::string_view text) {
                                  if (!options_.quiet) printer.print(is_thinking, text);
                                },
                                [&] { return interrupts_.take() || std::ferror(stdout) != 0; }};
  chat::Answer answer =
      chat::make_answer(session_, model_, chooser_, prompt, n_held, options, listener);
  held_ = prompt;
  held_.insert(held_.end(), answer.tokens.begin(), answer.tokens.end());
  held_.resize(static_cast<size_t>(session_.n_tokens()));  // the last token may not be computed
  last_answer_ = answer;
  return answer;
}

chat::Answer Chat::answer_to(chat::Conversation asked) {
  text::ChatInput input;
  input.messages = asked.messages();
  input.enable_thinking = options_.enable_thinking;
  std::string prompt = model_.render(std::move(input));
  chat::AnswerOptions options = options_.answer;
  if (text::ends_inside_thinking(prompt)) {
    // Some templates open the thinking whatever they are told.
    if (options_.enable_thinking == false) {
      prompt += text::kNoThoughts;
    } else {
      options.start = text::ThinkingSplitter::State::thinking;
    }
  }
  const std::vector<TokenId> tokens = model_.encode_prompt(prompt);
  show_prompt(prompt, tokens.size());
  chat::Answer result = answer(tokens, options);
  if (result.tokens.empty() && result.was_interrupted()) return result;
  asked.add_answer(result.text, result.thinking);
  conversation_ = std::move(asked);
  return result;
}

chat::Answer Chat::ask(const std::string& message) {
  require_utf8(message, "the prompt");
  chat::Conversation asked = conversation_;
  asked.add_user(message);
  return answer_to(std::move(asked));
}

chat::Answer Chat::regenerate() {
  chat::Conversation asked = conversation_;
  asked.drop_answer();
  if (!asked.ends_with_user()) {
    throw Error(Errc::bad_request, "there is nothing to answer again; type a message first");
  }
  return answer_to(std::move(asked));
}

chat::Answer Chat::complete(const std::string& text) {
  require_utf8(text, "the prompt");
  const std::vector<TokenId> tokens = model_.encode_prompt(text);
  show_prompt(text, tokens.size());
  return answer(tokens, options_.answer);
}

void Chat::print_stats() const {
  if (last_answer_) std::printf("%s\n", describe(*last_answer_).c_str());
  std::printf("context: %d of %d tokens, KV cache %s\n", session_.n_tokens(), session_.n_ctx(),
              format_bytes(session_.stats().kv_bytes).c_str());
}

bool Chat::command(const std::string& line) {
  const std::string name = line.substr(0, line.find(' '));
  const std::string argument = argument_of(line);
  if (name == "/quit" || name == "/exit") return false;
  if (name == "/help") {
    std::fputs(kHelp, stdout);
  } else if (name == "/reset") {
    conversation_.clear();
  } else if (name == "/system") {
    require_utf8(argument, "the system message");
    conversation_.clear();
    conversation_.set_system(argument);
  } else if (name == "/save") {
    save_conversation(conversation_, file_path(name, argument));
    std::printf("%zu messages saved\n", conversation_.messages().size());
  } else if (name == "/load") {
    conversation_ = load_conversation(file_path(name, argument));
    std::printf("%zu messages loaded\n", conversation_.messages().size());
  } else if (name == "/regen") {
    print_speed(regenerate());
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
    if (std::ferror(stdout)) return;  // nobody reads on; main() says so
  }
}

}  // namespace sluice::cli
