// See dialogue.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/dialogue.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "text/utf8.h"

namespace sluice::chat {

Dialogue::Dialogue(const Responder& with, DialogueOptions options)
    : with_(with), options_(std::move(options)) {}

Answer Dialogue::ask(const std::string& message, const Listener& listener) {
  text::require_utf8(message, "the prompt");
  Conversation asked = conversation_;
  asked.add_user(message);
  return answer_to(std::move(asked), listener);
}

Answer Dialogue::regenerate(const Listener& listener) {
  Conversation asked = conversation_;
  asked.drop_answer();
  if (!asked.ends_with_user()) {
    throw Error(Errc::bad_request, "there is nothing to answer again; type a message first");
  }
  return answer_to(std::move(asked), listener);
}

Answer Dialogue::complete(const std::string& text, const Listener& listener) {
  text::require_utf8(text, "the prompt");
  return answer({.text = text, .is_marked = false}, options_.answer, listener);
}

// The prompt for the conversation, without the oldest turns where it is too long. What was left out
// once stays so, as the session then holds most of the next prompt.
OpenedPrompt Dialogue::open(const Conversation& asked) {
  constexpr size_t kRoomTokens = 256;  // for an answer
  const Json all = asked.messages();
  const size_t first = !all.empty() && all[0].at("role") == "system" ? 1 : 0;
  const size_t last = all.size() - 1;  // the message to be answered
  const auto n_ctx = static_cast<size_t>(with_.session.n_ctx());
  size_t most = n_ctx - std::min(kRoomTokens, n_ctx / 4);
  size_t from = options_.leaves_out_oldest ? std::min(first + n_left_out_, last) : first;
  for (;;) {
    text::ChatInput input;
    input.enable_thinking = options_.enable_thinking;
    input.variables = options_.variables;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < first || i >= from) input.messages.push_back(all[i]);
    }
    OpenedPrompt opened =
        open_prompt(with_.model, std::move(input), options_.messages, options_.answer.start);
    const bool may_drop = options_.leaves_out_oldest && from < last;
    if (!may_drop || with_.model.encode_prompt(opened.prompt).size() <= most) {
      n_left_out_ = from - first;
      return opened;
    }
    most = n_ctx / 2;
    do ++from;
    while (from < last && all[from].at("role") != "user");
  }
}

Answer Dialogue::answer_to(Conversation asked, const Listener& listener) {
  const OpenedPrompt opened = open(asked);
  AnswerOptions options = options_.answer;
  options.start = opened.start;
  Answer result = answer(opened.prompt, options, listener);
  if (result.tokens.empty() && result.was_interrupted()) return result;
  asked.add_answer(result.text, result.thinking);
  conversation_ = std::move(asked);
  return result;
}

// Cuts the session's text back to what the prompt shares with it, or to a point before that to
// which the session can go back at no cost; returns how many tokens that is.
size_t Dialogue::keep_common(const std::vector<TokenId>& prompt) {
  const auto differ = std::ranges::mismatch(held_, prompt);
  auto n_held = static_cast<size_t>(differ.in1 - held_.begin());
  if (n_held == prompt.size()) --n_held;  // one must be computed to know what follows
  n_held = static_cast<size_t>(with_.session.kept_tokens(static_cast<int>(n_held)));
  held_.resize(n_held);
  with_.session.truncate(static_cast<int>(n_held));
  return n_held;
}

Answer Dialogue::answer(const Prompt& prompt, const AnswerOptions& options,
                        const Listener& listener) {
  std::vector<TokenId> text = with_.model.encode_prompt(prompt);
  if (options_.on_prompt) options_.on_prompt(prompt.shown(), text.size());
  if (text.empty()) throw Error(Errc::bad_request, "the prompt has no tokens; expected some text");
  if (text.size() > static_cast<size_t>(with_.session.n_ctx())) {
    throw Error(Errc::bad_request, cat("the prompt has ", text.size(),
                                       " tokens and the context holds ", with_.session.n_ctx(),
                                       "; shorten it, begin anew, or open the session with a "
                                       "larger context (sluice run: /reset, -c)"));
  }
  const size_t n_held = keep_common(text);

  // However the answer ends, the session knows how much of the text it has computed.
  const auto now_held = [&] {
    held_ = std::move(text);
    held_.resize(std::min(held_.size(), static_cast<size_t>(with_.session.n_tokens())));
  };
  try {
    Answer answer = make_answer(with_, {text, n_held}, options, listener);
    text.insert(text.end(), answer.tokens.begin(), answer.tokens.end());
    now_held();  // the last token may not be computed
    return answer;
  } catch (...) {
    now_held();  // of the answer's tokens nothing is known here: they are computed again
    throw;
  }
}

}  // namespace sluice::chat
