// What an answer consists of while it is made, and when it is complete; the same for all APIs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "sluice/engine.h"
#include "text/tool_calls.h"

namespace sluice::server {

struct ScoredToken {
  TokenId id = 0;
  float logprob = 0.0f;
};

struct TokenLogprobs {
  ScoredToken token;
  std::vector<ScoredToken> best;  // the likeliest, in order
};

// What one token added; parts of a text that are not decided yet come with a later one.
struct Delta {
  std::string text, thinking;
  std::vector<text::ToolCall> calls;
  int first_call = 0;  // how many calls came before
  std::vector<TokenLogprobs> logprobs;

  bool empty() const {
    return text.empty() && thinking.empty() && calls.empty() && logprobs.empty();
  }
};

// stop: at its own end, or at a stop string.
enum class Finish { stop, stop_string, length, tool_calls };

// One answer of several to the same prompt.
struct Choice {
  std::string text, thinking;
  std::vector<text::ToolCall> calls;
  std::vector<TokenLogprobs> logprobs;
  Finish finish = Finish::stop;
  std::string stop_text;          // with Finish::stop_string
  std::optional<RequestEnd> end;  // set: complete
};

struct Usage {
  int n_prompt = 0;
  int n_reused = 0;  // of the prompt, what was computed before
  int n_new = 0;
  double prompt_seconds = 0.0;
  double decode_seconds = 0.0;
};

Usage usage_of(const std::vector<Choice>& choices);

}  // namespace sluice::server
