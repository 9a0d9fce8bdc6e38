// See opened_prompt.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/opened_prompt.h"

#include <utility>

namespace sluice::chat {

OpenedPrompt open_prompt(const TextModel& model, text::ChatInput input,
                         TextModel::Messages messages, text::ThinkingSplitter::State start) {
  const bool is_unwanted = input.enable_thinking == false;
  OpenedPrompt opened{model.render(std::move(input), messages), start};
  if (!text::ends_inside_thinking(opened.prompt.text)) return opened;
  if (is_unwanted) {
    opened.prompt.text += text::kNoThoughts;
  } else {
    opened.start = text::ThinkingSplitter::State::thinking;
  }
  return opened;
}

}  // namespace sluice::chat
