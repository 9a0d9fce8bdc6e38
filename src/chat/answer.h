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
  int n_tokens = -1;  // at most; -1: as many as the context holds
  std::vector<std::string> stops;
  text::ThinkingSplitter::State start = text::ThinkingSplitter::State::undecided;
  size_t prefill_piece = 512;  // tokens between two looks at `interrupted`
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

// Where the text goes as it comes, and who may end it.
struct Listener {
  text::ThinkingSplitter::Sink on_text;
  std::function<bool()> interrupted;  // asked after every token
};

// Continues a session whose text is the first n_held tokens of the prompt. At least one token must
// be left to compute.
Answer make_answer(Session& session, const TextModel& model, Chooser& chooser,
                   std::span<const TokenId> prompt, size_t n_held, const AnswerOptions& options,
                   const Listener& listener);

// length, end_of_text, context_full or interrupt
const char* describe(StopReason reason);

// "31 prompt tokens, 0.35 s to the first token, 45 tokens at 41.2 tokens/s (end_of_text)"
std::string describe(const Answer& answer);

}  // namespace sluice::chat
