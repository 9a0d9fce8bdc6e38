// See chat_fields.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/chat_fields.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "base/error.h"
#include "server/api_error.h"
#include "text/json_depth.h"

namespace sluice::server {
namespace {

constexpr std::array<std::string_view, 3> kTextParts = {"text", "input_text", "output_text"};

// Templates show arguments as they show any JSON, so they want the object, not its text.
Json arguments_of(const Json& value, const std::string& path) {
  if (!value.is_string()) return value;
  const auto& text = value.get_ref<const std::string&>();
  if (text.empty()) return Json::object();
  Json parsed(Json::value_t::discarded);
  if (text::json_depth(text) <= kMostDepth) {
    parsed = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  }
  if (!parsed.is_object()) {
    throw bad_request(
        path, cat("'", path, "' is ", describe(value), "; expected the text of a JSON object"));
  }
  return parsed;
}

Json read_tool_calls(const Json& calls, const std::string& path) {
  Json all = Json::array();
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::string at = cat(path, "[", i, "]");
    const Fields call(calls[i], at);
    const Json* function = call.object("function");
    if (!function) call.fail("function", "an object with name and arguments");
    const Fields inside(*function, call.path("function"));
    Json arguments = Json::object();
    if (const Json* given = inside.find("arguments")) {
      arguments = arguments_of(*given, inside.path("arguments"));
    }
    all.push_back(
        {{"id", call.string("id").value_or("")},
         {"type", "function"},
         {"function", {{"name", inside.required_string("name")}, {"arguments", arguments}}}});
  }
  return all;
}

ToolChoice read_tool_choice(const Fields& fields) {
  using Kind = ToolChoice::Kind;
  const Json* choice = fields.find("tool_choice");
  if (!choice || *choice == "auto") return {};
  if (*choice == "none") return {.kind = Kind::none};
  if (*choice == "required") return {.kind = Kind::required};
  constexpr const char* kExpected =
      "auto, none, required, or {\"type\": \"function\", \"function\": {\"name\": ...}}";
  if (!choice->is_object()) fields.fail("tool_choice", kExpected);
  const Fields inside(*choice, fields.path("tool_choice"));
  const Json* function = inside.object("function");
  const Fields named(function ? *function : *choice,
                     function ? inside.path("function") : fields.path("tool_choice"));
  return {.kind = Kind::required, .name = named.required_string("name")};
}

}  // namespace

std::string joined_text(const Json& content, const std::string& path) {
  if (content.is_null()) return "";
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    throw bad_request(
        path, cat("'", path, "' is ", describe(content), "; expected a text or a list of parts"));
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    const Fields part(content[i], cat(path, "[", i, "]"));
    const std::string type = part.string("type").value_or("text");
    if (std::ranges::find(kTextParts, type) == kTextParts.end()) {
      part.fail("type", "text: the model reads nothing else");
    }
    text += part.required_string("text");
  }
  return text;
}

Json read_message(const Json& message, const std::string& path) {
  const Fields fields(message, path);
  std::string role = fields.required_string("role");
  if (role == "developer") role = "system";
  constexpr std::array<std::string_view, 4> kRoles = {"system", "user", "assistant", "tool"};
  if (std::ranges::find(kRoles, role) == kRoles.end()) {
    fields.fail("role", "system, developer, user, assistant or tool");
  }
  const Json* content = fields.find("content");
  const Json* calls = fields.array("tool_calls");
  if (!content && !(role == "assistant" && calls)) fields.fail("content", "a text");
  Json read = {{"role", role},
               {"content", content ? joined_text(*content, fields.path("content")) : ""}};
  for (const char* name : {"reasoning_content", "name", "tool_call_id"}) {
    if (const std::optional<std::string> text = fields.string(name)) read[name] = *text;
  }
  if (calls && !calls->empty()) {
    read["tool_calls"] = read_tool_calls(*calls, fields.path("tool_calls"));
  }
  return read;
}

void check_tools(const ChatFields& chat) {
  const bool has_tools = chat.tools.is_array() && !chat.tools.empty();
  if (chat.tool_choice.kind != ToolChoice::Kind::required) return;
  if (!has_tools)
    throw bad_request("tool_choice", "'tool_choice' asks for a tool; 'tools' has none");
  const auto is_chosen = [&](const Json& tool) {
    return tool["function"]["name"] == chat.tool_choice.name;
  };
  if (!chat.tool_choice.name.empty() && std::ranges::none_of(chat.tools, is_chosen)) {
    throw bad_request("tool_choice", cat("'tool_choice' asks for '", chat.tool_choice.name,
                                         "'; expected the name of one of 'tools'"));
  }
}

ChatFields read_chat(const Fields& fields) {
  ChatFields chat;
  const Json* messages = fields.array("messages");
  if (!messages || messages->empty()) fields.fail("messages", "a list of messages");
  for (size_t i = 0; i < messages->size(); ++i) {
    chat.messages.push_back(
        read_message((*messages)[i], cat(fields.path("messages"), "[", i, "]")));
  }
  if (const Json* tools = fields.array("tools"); tools && !tools->empty()) {
    for (size_t i = 0; i < tools->size(); ++i) {
      const Fields tool((*tools)[i], cat(fields.path("tools"), "[", i, "]"));
      if (tool.string("type").value_or("function") != "function") tool.fail("type", "function");
      const Json* function = tool.object("function");
      if (!function) tool.fail("function", "an object with name, description and parameters");
      Fields(*function, tool.path("function")).required_string("name");
    }
    chat.tools = *tools;
  }
  chat.tool_choice = read_tool_choice(fields);
  check_tools(chat);
  if (const Json* variables = fields.object("chat_template_kwargs")) chat.variables = *variables;
  if (const auto thinks = chat.variables.find("enable_thinking"); thinks != chat.variables.end()) {
    if (!thinks->is_boolean()) {
      fields.fail("chat_template_kwargs", "'enable_thinking' in it to be true or false");
    }
    chat.enable_thinking = thinks->get<bool>();
  }
  if (const auto effort = fields.string("reasoning_effort"))
    chat.enable_thinking = *effort != "none";
  return chat;
}

}  // namespace sluice::server
