// See responses_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/responses_fields.h"

#include <utility>

#include "base/error.h"
#include "server/api_error.h"

namespace sluice::server {
namespace {

// A message, a call of a tool, its result, or thoughts.
void add_item(const Json& item, const std::string& path, Json& messages) {
  const Fields fields(item, path);
  const std::string type = fields.string("type").value_or("message");
  if (type == "message") {
    messages.push_back(read_message(item, path));
  } else if (type == "function_call") {
    const Json call = {{"id", fields.required_string("call_id")},
                       {"function",
                        {{"name", fields.required_string("name")},
                         {"arguments", fields.required_string("arguments")}}}};
    const Json message = {{"role", "assistant"}, {"tool_calls", Json::array({call})}};
    messages.push_back(read_message(message, path));
  } else if (type == "function_call_output") {
    const Json* output = fields.find("output");
    if (!output) fields.fail("output", "a text");
    messages.push_back({{"role", "tool"},
                        {"tool_call_id", fields.required_string("call_id")},
                        {"content", joined_text(*output, fields.path("output"))}});
  } else if (type == "item_reference") {
    fields.fail(
        "type",
        "the item itself: this server keeps none of them; clients send it with 'store' false");
  } else if (type != "reasoning") {
    fields.fail("type", "message, function_call, function_call_output or reasoning");
  }
}

Json chat_tools(const Json& tools, const std::string& path) {
  Json all = Json::array();
  for (size_t i = 0; i < tools.size(); ++i) {
    const Fields tool(tools[i], cat(path, "[", i, "]"));
    if (tool.required_string("type") != "function") tool.fail("type", "function");
    Json function = {{"name", tool.required_string("name")}};
    if (const auto description = tool.string("description")) function["description"] = *description;
    if (const Json* parameters = tool.object("parameters")) function["parameters"] = *parameters;
    all.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return all;
}

}  // namespace

ChatFields read_responses_chat(const Fields& fields) {
  for (const char* name : {"previous_response_id", "conversation"}) {
    if (fields.find(name)) {
      fields.fail(name, "none: this server keeps no responses; send the whole input");
    }
  }
  Json chat = Json::object();
  chat["messages"] = Json::array();
  if (const auto instructions = fields.string("instructions")) {
    chat["messages"].push_back({{"role", "system"}, {"content", *instructions}});
  }
  const Json* input = fields.find("input");
  if (!input) fields.fail("input", "a text or a list of items");
  if (input->is_string()) {
    chat["messages"].push_back({{"role", "user"}, {"content", *input}});
  } else if (input->is_array()) {
    for (size_t i = 0; i < input->size(); ++i) {
      add_item((*input)[i], cat("input[", i, "]"), chat["messages"]);
    }
  } else {
    fields.fail("input", "a text or a list of items");
  }
  if (const Json* tools = fields.array("tools")) chat["tools"] = chat_tools(*tools, "tools");
  if (const Json* choice = fields.find("tool_choice")) chat["tool_choice"] = *choice;
  if (const Json* reasoning = fields.object("reasoning")) {
    if (const auto effort = Fields(*reasoning, "reasoning").string("effort")) {
      chat["reasoning_effort"] = *effort;
    }
  }
  return read_chat(Fields(chat));
}

GenerationFields read_responses_generation(const Fields& fields) {
  GenerationFields to;
  read_sampling(fields, to);
  to.n_tokens = fields.integer("max_output_tokens", 1).value_or(-1);
  to.stream = fields.boolean("stream").value_or(false);
  const Json* text = fields.object("text");
  const Json* format = text ? Fields(*text, "text").object("format") : nullptr;
  if (!format) return to;
  const Fields inside(*format, "text.format");
  const std::string type = inside.required_string("type");
  if (type == "json_object") {
    to.constraint = {.kind = Constraint::Kind::json_object};
  } else if (type == "json_schema") {
    const Json* schema = inside.object("schema");
    if (!schema) inside.fail("schema", "a JSON schema");
    to.constraint = {.kind = Constraint::Kind::json_schema, .text = dump(*schema)};
  } else if (type != "text") {
    inside.fail("type", "text, json_object or json_schema");
  }
  return to;
}

}  // namespace sluice::server
