// One answer of a model: chooses tokens, turns them into text as they come, and ends at a stop
// string, at the model's own end, when asked to stop, or when the grammar is done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chat/chooser.h"
#include "chat/text_model.h"
#include "sluice/sluice.h"
#include "text/thinking.h"

namespace sluice::chat {

struct AnswerOptions {
  int n_tokens = -1;               // at most; -1: as many as the context holds
  std::vector<std::string> stops;  // texts that end it
  text::ThinkingSplitter::State start = text::ThinkingSplitter::State::undecided;
};

struct Answer {
  std::string text;  // without the thinking
  std::string thinking;
  std::vector<TokenId> tokens;
  size_t n_prompt = 0;  // tokens that had to be computed before
  double first_token_seconds = 0.0;
  double decode_seconds = 0.0;  // of all tokens but the first
  std::string stop_reason;      // as describe() has it, or "stop" for a stop string

  bool was_interrupted() const { return stop_reason == "interrupt"; }
};

// Who hears of an answer while it is made, and may end it. All but on_text may be empty.
struct Listener {
  text::ThinkingSplitter::Sink on_text;
  std::function<bool()> interrupted =
      {};  // asked before each chunk of the prompt and after every token
  std::function<void(int n_done, int n_total)> on_progress = {};  // tokens of the prompt
  // When the session holds all of the prompt but its last token, of which n_held were there before.
  std::function<void(std::span<const TokenId> prompt, size_t n_held)> on_read = {};
};

// What an answer is made with; all of it outlives the call.
struct Responder {
  Session& session;
  const TextModel& model;
  Chooser& chooser;
};

// A prompt, of which the session holds the first n_held tokens; at least one is left to compute.
struct HeldPrompt {
  std::span<const TokenId> tokens;
  size_t n_held = 0;
};

// Computes the prompt and continues it: prefill, then choose, show and compute one token after the
// other until something ends the answer.
Answer make_answer(const Responder& with, const HeldPrompt& prompt, const AnswerOptions& options,
                   const Listener& listener);

// length, end_of_text, context_full or interrupt
const char* describe(StopReason reason);

// "31 prompt tokens, 0.35 s to the first token, 45 tokens at 41.2 tokens/s (end_of_text)"
std::string describe(const Answer& answer);

}  // namespace sluice::chat
