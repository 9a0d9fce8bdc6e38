// The chat template of a model: from a conversation to the text that the model is given. It comes
// with the model file as a Jinja program; which one of several is meant, the caller decides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/template.h"

namespace sluice::text {

using Json = jinja::Json;

// The variables that templates are written against, as Hugging Face names them.
struct ChatInput {
  // [{"role": ..., "content": text or parts, "reasoning_content": ..., "tool_calls": [...]}, ...]
  Json messages = Json::array();
  Json tools;  // null: none
  bool add_generation_prompt = true;
  std::optional<bool> enable_thinking;  // unset: the template decides
  std::string bos_token, eos_token;
  Json variables = Json::object();  // any others; they win over those above

  // What strftime_now() shows. No clock is read here.
  std::optional<std::chrono::local_seconds> now;
};

// Immutable; any thread may render.
class ChatTemplate {
 public:
  // Throws Error (bad_file) where the text is no template we can run.
  explicit ChatTemplate(std::string_view source, const jinja::Limits& limits = {})
      : template_(source, limits) {}

  // Throws Error (bad_request) where the template refuses the conversation, with its own message.
  std::string render(const ChatInput& input) const;

  // Whether the template looks at the variable at all: "tools", "enable_thinking" and so on.
  bool mentions(std::string_view variable) const { return template_.mentions(variable); }

 private:
  jinja::Template template_;
};

}  // namespace sluice::text
