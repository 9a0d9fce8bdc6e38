// See chat_template.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/chat_template.h"

#include "base/error.h"

namespace sluice::text {

std::string ChatTemplate::render(const ChatInput& input) const {
  if (!input.messages.is_array()) {
    throw Error(Errc::bad_request,
                cat("the messages of a chat must be a list, not ", input.messages.type_name()));
  }
  if (!input.variables.is_object()) {
    throw Error(Errc::bad_request, cat("the variables of a chat template must be an object, not ",
                                       input.variables.type_name()));
  }
  const Json none;
  const Json add_generation_prompt = input.add_generation_prompt;
  const Json enable_thinking = input.enable_thinking.value_or(false);
  const Json bos_token = input.bos_token;
  const Json eos_token = input.eos_token;
  jinja::Template::Variables variables = {
      {"messages", &input.messages},
      {"tools", &input.tools},
      {"documents", &none},  // Hugging Face always defines it, and so templates rely on it
      {"add_generation_prompt", &add_generation_prompt},
      {"bos_token", &bos_token},
      {"eos_token", &eos_token},
  };
  if (input.enable_thinking) variables.emplace_back("enable_thinking", &enable_thinking);
  for (const auto& [name, value] : input.variables.get_ref<const Json::object_t&>()) {
    variables.emplace_back(name, &value);
  }
  return template_.render(variables, input.now);
}

}  // namespace sluice::text
