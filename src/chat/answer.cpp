// See answer.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/answer.h"

#include <array>
#include <cstdio>
#include <limits>
#include <utility>

#include "chat/text_pipe.h"

namespace sluice::chat {
namespace {

// On the clock of the session's device: a described machine's answer takes that machine's time.
double seconds_of(const Session& session) {
  return session.stats().prefill_seconds + session.stats().decode_seconds;
}

bool is_interrupted(const Listener& listener) {
  return listener.interrupted && listener.interrupted();
}

}  // namespace

Answer make_answer(const Responder& with, const HeldPrompt& prompt, const AnswerOptions& options,
                   const Listener& listener) {
  Answer answer;
  TextPipe pipe(options.stops, options.start, [&](bool is_thinking, std::string_view text) {
    (is_thinking ? answer.thinking : answer.text) += text;
    listener.on_text(is_thinking, text);
  });
  const double start = seconds_of(with.session);
  double first = start;

  // Prefill: what the session does not hold yet, chunk by chunk.
  std::span<const TokenId> fresh = prompt.tokens.subspan(prompt.n_held);
  answer.n_prompt = fresh.size();
  GenerateOptions generate;
  generate.prompt = {.progress = listener.on_progress, .should_stop = listener.interrupted};
  generate.prompt.keep_at = with.model.ends_of_messages(prompt.tokens, prompt.n_held);

  if (listener.on_read && prompt.tokens.size() > 1) {
    if (!with.session.append(fresh.first(fresh.size() - 1), {}, generate.prompt)) {
      answer.stop_reason = describe(StopReason::callback);
      return answer;
    }
    listener.on_read(prompt.tokens, prompt.n_held);
    fresh = fresh.last(1);
    generate.prompt.progress = {};
  }

  // Decode: token after token, each chosen by the logits of the one before.
  generate.n_tokens = options.n_tokens < 0 ? std::numeric_limits<int>::max() : options.n_tokens;
  generate.end_tokens = with.model.end_tokens();
  with.chooser.begin(prompt.tokens);
  if (!with.chooser.takes_best()) {
    generate.choose = [&](std::span<const float> logits) { return with.chooser.choose(logits); };
  }

  // Streaming: its bytes go out as text before it is computed in its turn.
  const auto stream = [&](TokenId token) {
    if (answer.tokens.empty()) first = seconds_of(with.session);
    answer.tokens.push_back(token);
    const bool goes_on = pipe.push(with.model.tokenizer().piece(token, /*render_special=*/false));
    return goes_on && !is_interrupted(listener);
  };

  const GenerateResult result = with.session.generate(fresh, generate, stream);
  pipe.finish();
  if (answer.tokens.empty()) first = seconds_of(with.session);
  answer.stop_reason = pipe.stopped() ? "stop" : describe(result.reason);
  answer.first_token_seconds = first - start;
  answer.decode_seconds = seconds_of(with.session) - first;
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
    case StopReason::cancelled:
      return "interrupt";
    case StopReason::deadline:
      return "deadline";
    case StopReason::failed:
      return "failed";
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
