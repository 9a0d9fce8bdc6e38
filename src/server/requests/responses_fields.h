// A request to OpenAI's /v1/responses, as the fields that chats share. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"

namespace sluice::server {

// `instructions`, `input` with its items, `tools`, `tool_choice` and `reasoning`. Throws ApiError;
// also where an earlier response is referred to, since none are kept.
ChatFields read_responses_chat(const Fields& fields);

// `max_output_tokens`, `text.format`, `stream` and sampling.
GenerationFields read_responses_generation(const Fields& fields);

}  // namespace sluice::server
