// The prompt of a chat, and where in its thinking the answer begins.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "chat/text_model.h"
#include "text/thinking.h"

namespace sluice::chat {

struct OpenedPrompt {
  Prompt prompt;
  text::ThinkingSplitter::State start = text::ThinkingSplitter::State::undecided;
};

// Renders the conversation. Some templates open the thinking whatever they are told: where it is
// not wanted it is closed again, and else the answer begins in it. `start` holds for other prompts.
OpenedPrompt open_prompt(const TextModel& model, text::ChatInput input,
                         TextModel::Messages messages, text::ThinkingSplitter::State start);

}  // namespace sluice::chat
