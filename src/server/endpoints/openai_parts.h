// What OpenAI's endpoints for text share of their answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/answering/answer_parts.h"
#include "server/json.h"
#include "server/model_service.h"

namespace sluice::server {

// "stop", "length" or "tool_calls"
const char* finish_reason(Finish finish);

// {"prompt_tokens", "completion_tokens", "total_tokens", "prompt_tokens_details"}
Json openai_usage(const Usage& usage);

// Speeds, as llama.cpp's server names them.
Json timings(const Usage& usage);

// {"token", "logprob", "bytes", "top_logprobs"} for each token of a chat.
Json chat_logprobs(const ModelService& service, const std::vector<TokenLogprobs>& tokens);

}  // namespace sluice::server
