// A conversation as a request brings it, in the form that chat templates want. Pure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/fields.h"

namespace sluice::server {

// Which tools an answer may use, must use, or must not.
struct ToolChoice {
  enum class Kind { automatic, none, required };
  Kind kind = Kind::automatic;
  std::string name = {};  // required: this one; empty: any
};

struct ChatFields {
  Json messages = Json::array();
  Json tools;  // null: none; else [{"type": "function", "function": {...}}, ...]
  ToolChoice tool_choice;
  std::optional<bool> enable_thinking;
  Json variables = Json::object();  // chat_template_kwargs
};

// `messages`, `tools`, `tool_choice`, `chat_template_kwargs` and `reasoning_effort` of a request to
// OpenAI's chat endpoint. Parts of a message are joined to one text; `developer` is the system;
// arguments of tool calls become objects. Throws ApiError.
ChatFields read_chat(const Fields& fields);

// One message; `path` is its place in the request, for errors.
Json read_message(const Json& message, const std::string& path);

// A text, or the texts of parts; empty for null.
std::string joined_text(const Json& content, const std::string& path);

// Refuses tools without a name; checks that a chosen one is there.
void check_tools(const ChatFields& chat);

}  // namespace sluice::server
