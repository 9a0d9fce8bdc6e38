// See answer_plan.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/answering/answer_plan.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "chat/opened_prompt.h"
#include "server/api_error.h"
#include "text/tool_calls.h"

namespace sluice::server {
namespace {

using text::ThinkingSplitter;

bool uses_tools(const ChatFields& chat) {
  return !chat.tools.is_null() && chat.tool_choice.kind != ToolChoice::Kind::none;
}

// A tool's parameters are a schema of their own, whose $ref begin at its root. Makes them begin at
// `place`, where the schema of all calls has those parameters.
void move_refs(Json& schema, const std::string& place) {
  if (schema.is_array()) {
    for (Json& item : schema) move_refs(item, place);
  }
  if (!schema.is_object()) return;
  for (auto& [key, value] : schema.items()) {
    if (key == "$ref" && value.is_string()) {
      const auto& ref = value.get_ref<const std::string&>();
      if (ref.starts_with('#')) value = place + ref.substr(1);
    } else if (key == "properties" || key == "$defs" || key == "definitions") {
      if (!value.is_object()) continue;
      for (auto& [name, inside] : value.items()) move_refs(inside, place);
    } else if (key != "const" && key != "enum" && key != "default" && key != "examples") {
      move_refs(value, place);  // those four hold values, which may have fields of any name
    }
  }
}

// {"name": ..., "arguments": ...} of any tool that may be chosen.
Constraint call_constraint(const ChatFields& chat) {
  const auto may_be_chosen = [&](const Json& tool) {
    return chat.tool_choice.name.empty() || tool["function"]["name"] == chat.tool_choice.name;
  };
  const bool is_one = std::ranges::count_if(chat.tools, may_be_chosen) == 1;
  Json calls = Json::array();
  for (const Json& tool : chat.tools) {
    if (!may_be_chosen(tool)) continue;
    const Json& function = tool["function"];
    const std::string name = function["name"];
    Json parameters = {{"type", "object"}};
    if (function.contains("parameters")) parameters = function["parameters"];
    move_refs(parameters,
              cat(is_one ? "#" : cat("#/anyOf/", calls.size()), "/properties/arguments"));
    calls.push_back({{"type", "object"},
                     {"properties", {{"name", {{"const", name}}}, {"arguments", parameters}}},
                     {"required", {"name", "arguments"}}});
  }
  const Json schema = is_one ? calls[0] : Json{{"anyOf", calls}};
  return {.kind = Constraint::Kind::json_schema, .text = dump(schema)};
}

void require_room(const ModelService& service, size_t n_prompt) {
  if (n_prompt == 0) throw bad_request("", "the prompt has no tokens; expected some text");
  if (n_prompt >= static_cast<size_t>(service.n_ctx())) {
    throw ApiError(400,
                   cat("the prompt has ", n_prompt, " tokens and the context holds ",
                       service.n_ctx(), "; shorten it, or serve with a larger context (-c)"),
                   "", "context_length_exceeded");
  }
}

}  // namespace

AnswerPlan plan_chat(const ModelService& service, const ChatFields& chat, GenerationFields how) {
  const chat::TextModel& model = service.text();
  if (!model.has_template()) {
    throw bad_request("messages", "the model has no chat template; use /v1/completions");
  }
  const bool with_tools = uses_tools(chat);
  if (with_tools && !model.template_mentions("tools")) {
    throw bad_request("tools", "the model's chat template knows no tools");
  }
  const bool must_call = chat.tool_choice.kind == ToolChoice::Kind::required;
  if (must_call && how.constraint) {
    throw bad_request("tool_choice",
                      "a tool must be used and the answer must match something; "
                      "expected one of the two");
  }
  AnswerPlan plan;
  plan.how = std::move(how);
  if (must_call) plan.how.constraint = call_constraint(chat);

  text::ChatInput input;
  input.messages = chat.messages;
  if (with_tools) input.tools = chat.tools;
  input.variables = chat.variables;
  input.enable_thinking = chat.enable_thinking;
  // A grammar holds from the first token on, so there is no room for thinking.
  auto start = ThinkingSplitter::State::undecided;
  if (plan.how.constraint) {
    input.enable_thinking = false;
    input.variables.erase("enable_thinking");
    start = ThinkingSplitter::State::answer;
  }
  chat::OpenedPrompt opened =
      chat::open_prompt(model, std::move(input), chat::TextModel::Messages::text, start);
  if (must_call) opened.prompt.text += std::string(text::kToolCallOpen) + "\n";
  plan.start = opened.start;
  if (with_tools) plan.calls = must_call ? AnswerPlan::Calls::opened : AnswerPlan::Calls::taken;
  plan.prompt = model.encode_prompt(opened.prompt);
  require_room(service, plan.prompt.size());
  return plan;
}

AnswerPlan plan_completion(const ModelService& service, const std::string& text,
                           GenerationFields how) {
  AnswerPlan plan;
  plan.how = std::move(how);
  plan.prompt = service.text().encode_prompt({.text = text, .is_marked = false});
  require_room(service, plan.prompt.size());
  return plan;
}

FillPlan plan_fill(const ModelService& service, const text::FillInput& input,
                   GenerationFields how) {
  const text::Tokenizer& tokenizer = service.text().tokenizer();
  if (const std::string missing = text::missing_fill_tokens(tokenizer); !missing.empty()) {
    throw ApiError(501, cat("the model cannot fill in the middle: its file lacks ", missing,
                            ", and its vocabulary has no known token in their place; use a model "
                            "that was trained for it, such as a coder's"));
  }
  const int n_ctx = service.n_ctx();
  const int n_answer = std::clamp(how.n_tokens >= 0 ? how.n_tokens : n_ctx / 8, 1, n_ctx);
  text::FillPrompt prompt =
      make_fill_prompt(tokenizer, input, static_cast<size_t>(n_ctx - n_answer));
  FillPlan fill;
  fill.plan.how = std::move(how);
  fill.plan.prompt = std::move(prompt.tokens);
  fill.n_left_out = prompt.n_left_out;
  require_room(service, fill.plan.prompt.size());
  return fill;
}

}  // namespace sluice::server
