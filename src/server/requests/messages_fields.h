// A request to Anthropic's /v1/messages, as the fields that chats share. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"

namespace sluice::server {

// `system` and `messages` with their blocks, `tools`, `tool_choice` and `thinking`. Throws
// ApiError.
ChatFields read_messages_chat(const Fields& fields);

// `max_tokens`, `stop_sequences`, `stream` and sampling.
GenerationFields read_messages_generation(const Fields& fields);

}  // namespace sluice::server
