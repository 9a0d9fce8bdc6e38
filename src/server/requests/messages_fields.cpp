// See messages_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/messages_fields.h"

#include <utility>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

// Blocks of one message become a message of the role, and one for each result of a tool.
void add_blocks(const std::string& role, const Json& blocks, const std::string& path, Json& to) {
  Json message = {{"role", role}, {"content", ""}};
  std::string text;
  bool has_text = false;
  for (size_t i = 0; i < blocks.size(); ++i) {
    const Fields block(blocks[i], cat(path, "[", i, "]"));
    const std::string type = block.required_string("type");
    if (type == "text") {
      text += block.required_string("text");
      has_text = true;
    } else if (type == "thinking") {
      message["reasoning_content"] = block.required_string("thinking");
    } else if (type == "redacted_thinking") {
      continue;  // nothing that can be read
    } else if (type == "tool_use") {
      const Json* input = block.object("input");
      message["tool_calls"].push_back({{"id", block.required_string("id")},
                                       {"type", "function"},
                                       {"function",
                                        {{"name", block.required_string("name")},
                                         {"arguments", input ? *input : Json::object()}}}});
    } else if (type == "tool_result") {
      const Json* content = block.find("content");
      to.push_back({{"role", "tool"},
                    {"tool_call_id", block.required_string("tool_use_id")},
                    {"content", content ? joined_text(*content, block.path("content")) : ""}});
    } else {
      block.fail("type", "text, thinking, tool_use or tool_result: the model reads nothing else");
    }
  }
  message["content"] = text;
  if (has_text || message.size() > 2) to.push_back(std::move(message));
}

Json read_tools(const Json& tools, const std::string& path) {
  Json all = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const Fields tool(tools[i], cat(path, "[", i, "]"));
    Json function = {{"name", tool.required_string("name")}};
    if (const auto description = tool.string("description")) function["description"] = *description;
    const Json* schema = tool.object("input_schema");
    if (!schema) tool.fail("input_schema", "a JSON schema");
    function["parameters"] = *schema;
    all.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return all;
}

ToolChoice read_messages_tool_choice(const Fields& fields) {
  using Kind = ToolChoice::Kind;
  const Json* choice = fields.object("tool_choice");
  if (!choice) return {};
  const Fields inside(*choice, fields.path("tool_choice"));
  const std::string type = inside.required_string("type");
  if (type == "auto") return {};
  if (type == "none") return {.kind = Kind::none};
  if (type == "any") return {.kind = Kind::required};
  if (type != "tool") inside.fail("type", "auto, any, tool or none");
  return {.kind = Kind::required, .name = inside.required_string("name")};
}

// {"format": {"type": "json_schema", "schema": {...}}}
Constraint read_output_config(const Fields& fields) {
  const Json* config = fields.object("output_config");
  if (!config) return {};
  const Fields inside(*config, fields.path("output_config"));
  const Json* given = inside.object("format");
  if (!given) return {};
  const Fields format(*given, inside.path("format"));
  if (format.required_string("type") != "json_schema") format.fail("type", "json_schema");
  const Json* schema = format.object("schema");
  if (!schema) format.fail("schema", "a JSON schema");
  return {.kind = Constraint::Kind::json_schema, .text = dump(*schema)};
}

}  // namespace

ChatFields read_messages_chat(const Fields& fields) {
  // A thread's next request has new messages alone. Anthropic's clients know the code: they send
  // the whole conversation instead.
  if (fields.find("thread")) {
    throw ApiError(400,
                   "'thread' needs a server that keeps messages, which this one does not; send "
                   "the whole conversation",
                   "thread", "thread_unsupported_request");
  }
  ChatFields chat;
  if (const Json* system = fields.find("system")) {
    chat.messages.push_back(
        {{"role", "system"}, {"content", joined_text(*system, fields.path("system"))}});
  }
  const Json* messages = fields.array("messages");
  if (!messages || messages->empty()) fields.fail("messages", "a list of messages");
  for (size_t i = 0; i < messages->size(); ++i) {
    const Fields message((*messages)[i], cat(fields.path("messages"), "[", i, "]"));
    const std::string role = message.required_string("role");
    if (role != "user" && role != "assistant") message.fail("role", "user or assistant");
    const Json* content = message.find("content");
    if (!content) message.fail("content", "a text or a list of blocks");
    if (content->is_string()) {
      chat.messages.push_back({{"role", role}, {"content", *content}});
    } else if (content->is_array()) {
      add_blocks(role, *content, message.path("content"), chat.messages);
    } else {
      message.fail("content", "a text or a list of blocks");
    }
  }
  if (const Json* tools = fields.array("tools"); tools && !tools->empty()) {
    chat.tools = read_tools(*tools, fields.path("tools"));
  }
  chat.tool_choice = read_messages_tool_choice(fields);
  check_tools(chat);
  if (const Json* thinking = fields.object("thinking")) {
    const Fields inside(*thinking, fields.path("thinking"));
    chat.enable_thinking = inside.required_string("type") != "disabled";
  }
  return chat;
}

GenerationFields read_messages_generation(const Fields& fields) {
  GenerationFields to;
  read_sampling(fields, to);
  read_stops(fields, "stop_sequences", to);
  const std::optional<int> n_tokens = fields.integer("max_tokens", 1);
  if (!n_tokens) fields.fail("max_tokens", "a number of tokens");
  to.n_tokens = *n_tokens;
  to.constraint = read_output_config(fields);
  to.stream = fields.boolean("stream").value_or(false);
  return to;
}

}  // namespace sluice::server
