// See answer.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/answer.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <limits>
#include <utility>

#include "text/stop_strings.h"
#include "text/utf8_stream.h"

namespace sluice::chat {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point a, Clock::time_point b) {
  return std::chrono::duration<double>(b - a).count();
}

// Bytes of tokens -> characters -> without stop strings -> thinking and answer apart.
class TextPipe {
 public:
  TextPipe(const AnswerOptions& options, text::ThinkingSplitter::Sink sink)
      : stops_(options.stops), splitter_(options.start, std::move(sink)) {}

  // Whether to go on.
  bool push(std::string_view bytes) {
    splitter_.push(stops_.push(utf8_.push(bytes)));
    return !stops_.hit();
  }
  void finish() {
    splitter_.push(stops_.push(utf8_.flush()));
    splitter_.push(stops_.finish());
    splitter_.finish();
  }
  bool stopped() const { return stops_.hit(); }

 private:
  text::Utf8Stream utf8_;
  text::StopStrings stops_;
  text::ThinkingSplitter splitter_;
};

// All but the last token of the prompt; false where it was interrupted.
bool prefill(Session& session, std::span<const TokenId> tokens, size_t piece,
             const std::function<bool()>& interrupted) {
  while (tokens.size() > 1) {
    const auto next = tokens.first(std::min(piece, tokens.size() - 1));
    session.append(next);
    tokens = tokens.subspan(next.size());
    if (interrupted()) return false;
  }
  return true;
}

}  // namespace

Answer make_answer(Session& session, const TextModel& model, Chooser& chooser,
                   std::span<const TokenId> prompt, size_t n_held, const AnswerOptions& options,
                   const Listener& listener) {
  Answer answer;
  const std::span<const TokenId> fresh = prompt.subspan(n_held);
  answer.n_prompt = fresh.size();
  TextPipe pipe(options, [&](bool is_thinking, std::string_view text) {
    (is_thinking ? answer.thinking : answer.text) += text;
    listener.on_text(is_thinking, text);
  });
  chooser.begin(prompt);

  GenerateOptions generate;
  generate.n_tokens = options.n_tokens < 0 ? std::numeric_limits<int>::max() : options.n_tokens;
  generate.end_tokens = model.end_tokens();
  const Clock::time_point start = Clock::now();
  Clock::time_point first = start;
  generate.choose = [&](std::span<const float> logits) {
    const TokenId token = chooser.choose(logits);
    if (answer.tokens.empty()) first = Clock::now();
    return token;
  };
  answer.stop_reason = describe(StopReason::callback);
  if (prefill(session, fresh, options.prefill_piece, listener.interrupted)) {
    const auto result = session.generate(fresh.last(1), generate, [&](TokenId token) {
      answer.tokens.push_back(token);
      const std::string piece = model.tokenizer().piece(token, /*render_special=*/false);
      return pipe.push(piece) && !listener.interrupted();
    });
    answer.stop_reason = describe(result.reason);
  }
  pipe.finish();
  if (pipe.stopped()) answer.stop_reason = "stop";
  answer.first_token_seconds = seconds_between(start, first);
  answer.decode_seconds = seconds_between(first, Clock::now());
  return answer;
}

const char* describe(StopReason reason) {
  switch (reason) {
    case StopReason::length:
      return "length";
    case StopReason::end_of_text:
      return "end_of_text";
    case StopReason::context_full:
      return "context_full";
    case StopReason::callback:
      return "interrupt";
  }
  return "unknown";
}

std::string describe(const Answer& answer) {
  const size_t n_timed = answer.tokens.empty() ? 0 : answer.tokens.size() - 1;
  const double rate =
      answer.decode_seconds > 0.0 ? static_cast<double>(n_timed) / answer.decode_seconds : 0.0;
  std::array<char, 200> text;
  std::snprintf(text.data(), text.size(),
                "%zu prompt tokens, %.2f s to the first token, %zu tokens at %.1f tokens/s (%s)",
                answer.n_prompt, answer.first_token_seconds, answer.tokens.size(), rate,
                answer.stop_reason.c_str());
  return text.data();
}

}  // namespace sluice::chat
