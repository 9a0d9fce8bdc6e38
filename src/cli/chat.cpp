// See chat.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/chat.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/error.h"
#include "base/units.h"
#include "cli/text_file.h"
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

void print_speed(const Answer& answer) { std::fprintf(stderr, "[%s]\n", describe(answer).c_str()); }

}  // namespace

Chat::Chat(const TextModel& model, Session& session, Chooser& chooser, ChatOptions options)
    : model_(model), session_(session), chooser_(chooser), options_(std::move(options)) {
  conversation_.set_system(options_.system);
}

void Chat::show_prompt(const std::string& text, size_t n_tokens) const {
  if (!options_.verbose_prompt) return;
  std::fprintf(stderr, "--- prompt, %zu tokens\n%s\n---\n", n_tokens, text.c_str());
}

// A prompt mostly begins as the session's text does: only what differs is computed.
Answer Chat::answer(const std::vector<TokenId>& prompt, bool starts_thinking) {
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

  AnswerOptions options = options_.answer;
  options.starts_thinking = starts_thinking;
  AnswerPrinter printer(options_.show_thinking);
  interrupts_.take();
  const Listener listener{[&](bool is_thinking, std::string_view text) {
                            if (!options_.quiet) printer.print(is_thinking, text);
                          },
                          [&] { return interrupts_.take() || std::ferror(stdout) != 0; }};
  Answer answer = make_answer(session_, model_, chooser_, prompt, n_held, options, listener);
  if (!options_.quiet) printer.finish();
  held_ = prompt;
  held_.insert(held_.end(), answer.tokens.begin(), answer.tokens.end());
  held_.resize(static_cast<size_t>(session_.n_tokens()));  // the last token may not be computed
  last_answer_ = answer;
  return answer;
}

Answer Chat::answer_conversation() {
  text::ChatInput input;
  input.messages = conversation_.messages();
  input.enable_thinking = options_.enable_thinking;
  const std::string prompt = model_.render(std::move(input));
  const std::vector<TokenId> tokens = model_.encode_rendered(prompt);
  show_prompt(prompt, tokens.size());
  return answer(tokens, text::ends_inside_thinking(prompt));
}

Answer Chat::ask(const std::string& message) {
  require_utf8(message, "the prompt");
  conversation_.add_user(message);
  try {
    Answer answer = answer_conversation();
    if (answer.tokens.empty() && answer.stop_reason == "interrupt") {
      conversation_.drop_last();  // stopped before it began: as if it had not been asked
    } else {
      conversation_.add_answer(answer.text, answer.thinking);
    }
    return answer;
  } catch (const Error&) {
    conversation_.drop_last();
    throw;
  }
}

Answer Chat::complete(const std::string& text) {
  require_utf8(text, "the prompt");
  const std::vector<TokenId> tokens =
      model_.tokenizer().encode(text, {.add_special = true, .parse_special = true});
  show_prompt(text, tokens.size());
  return answer(tokens, /*starts_thinking=*/false);
}

Answer Chat::regenerate() {
  Conversation before = conversation_;
  if (conversation_.n_turns() > 0 && !conversation_.ends_with_user()) conversation_.drop_last();
  if (!conversation_.ends_with_user()) {
    conversation_ = std::move(before);
    throw Error(Errc::bad_request, "there is nothing to answer again; type a message first");
  }
  Answer again = answer_conversation();
  conversation_.add_answer(again.text, again.thinking);
  return again;
}

void Chat::print_stats() const {
  if (last_answer_) std::printf("%s\n", describe(*last_answer_).c_str());
  std::printf("context: %d of %d tokens, KV cache %s\n", session_.n_tokens(), session_.n_ctx(),
              format_bytes(session_.stats().kv_bytes).c_str());
}

bool Chat::command(const std::string& line) {
  const size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument = space == std::string::npos ? "" : line.substr(space + 1);
  const auto file_name = [&] {
    if (argument.empty()) throw Error(Errc::bad_request, cat(name, " needs the name of a file"));
    return argument;
  };
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
    conversation_.save(file_name());
    std::printf("%zu messages saved\n", conversation_.messages().size());
  } else if (name == "/load") {
    conversation_.load(file_name());
    std::printf("%zu messages loaded\n", conversation_.messages().size());
  } else if (name == "/regen") {
    print_speed(regenerate());
  } else if (name == "/stats") {
    print_stats();
  } else {
    throw Error(Errc::bad_request, cat("'", name, "' is no command; /help lists them"));
  }
  return true;
}

void Chat::run(LineEditor& editor) {
  for (;;) {
    const LineEditor::Input input = editor.read("> ");
    if (input.outcome == LineEditor::Outcome::end) return;
    interrupts_.take();  // meant for what was being typed
    if (input.outcome == LineEditor::Outcome::interrupted || input.text.empty()) continue;
    try {
      if (input.text.starts_with('/')) {
        if (!command(input.text)) return;
      } else {
        print_speed(ask(input.text));
      }
    } catch (const Error& error) {
      std::fprintf(stderr, "sluice: error: %s\n", error.what());
    }
    if (std::ferror(stdout)) return;  // nobody reads on; main() says so
  }
}

}  // namespace sluice::cli
