// All that is needed to begin an answer, once a request has been read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "server/model_service.h"
#include "server/requests/chat_fields.h"
#include "server/requests/generation_fields.h"
#include "text/fill_prompt.h"
#include "text/thinking.h"

namespace sluice::server {

struct AnswerPlan {
  std::vector<TokenId> prompt;
  GenerationFields how;
  text::ThinkingSplitter::State start = text::ThinkingSplitter::State::answer;
  // Calls of tools are text, are taken out of it, or begin before the first token.
  enum class Calls { text, taken, opened };
  Calls calls = Calls::text;
};

// A chat: rendered by the model's template. Where a tool must be used, the prompt opens the call,
// and a grammar holds the answer to the tools' parameters. Throws ApiError, and Error (bad_request)
// where the template refuses.
AnswerPlan plan_chat(const ModelService& service, const ChatFields& chat, GenerationFields how);

// A text to be continued as it stands.
AnswerPlan plan_completion(const ModelService& service, const std::string& text,
                           GenerationFields how);

struct FillPlan {
  AnswerPlan plan;
  int n_left_out = 0;  // of the files for reference
};

// A gap to be filled in. Files for reference are left out, the first before the others, where with
// them there would be no room for the answer: as many tokens as it may have, or an eighth of the
// context where that is not said. Throws ApiError: 501 where the model has no tokens for it.
FillPlan plan_fill(const ModelService& service, const text::FillInput& input, GenerationFields how);

}  // namespace sluice::server
