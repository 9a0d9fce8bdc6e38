// Requests to Ollama's endpoints, as the fields that all requests share. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"

namespace sluice::server {

// `options` (temperature, num_predict, stop and the rest), `format` and `stream`, which is on
// unless it is turned off. Throws ApiError.
GenerationFields read_ollama_generation(const Fields& fields);

// `keep_alive`: seconds, or a time such as "5m" or "24h"; below 0: for ever. None: not said.
std::optional<double> read_keep_alive(const Fields& fields);

// `messages`, `tools` and `think`.
ChatFields read_ollama_chat(const Fields& fields);

// `system`, `prompt` and `think` of /api/generate.
ChatFields read_ollama_prompt(const Fields& fields);

}  // namespace sluice::server
