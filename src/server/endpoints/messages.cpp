// POST /v1/messages and /v1/messages/count_tokens: Anthropic's chat.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/messages_fields.h"

#include <utility>

#include "server/endpoints/endpoints.h"

namespace sluice::server {
namespace {

Json input_of(const text::ToolCall& call) {
  const Json input = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
  return input.is_object() ? input : Json::object();
}

const char* stop_reason(Finish finish) {
  switch (finish) {
    case Finish::length:
      return "max_tokens";
    case Finish::stop_string:
      return "stop_sequence";
    case Finish::tool_calls:
      return "tool_use";
    case Finish::stop:
      break;
  }
  return "end_turn";
}

Json stop_sequence(const Choice& choice) {
  return choice.finish == Finish::stop_string ? Json(choice.stop_text) : Json();
}

Json usage_json(const Usage& usage) {
  return {{"input_tokens", usage.n_prompt - usage.n_reused},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", usage.n_reused},
          {"output_tokens", usage.n_new}};
}

class MessagesFormat : public AnswerFormat {
 public:
  MessagesFormat(const ModelService& service, size_t n_prompt)
      : service_(service), n_prompt_(n_prompt) {}

  Json whole(const std::vector<Choice>& choices) override {
    const Choice& choice = choices.front();
    Json content = Json::array();
    if (!choice.thinking.empty()) {
      content.push_back({{"type", "thinking"}, {"thinking", choice.thinking}, {"signature", ""}});
    }
    if (!choice.text.empty()) content.push_back({{"type", "text"}, {"text", choice.text}});
    for (const text::ToolCall& call : choice.calls) {
      content.push_back({{"type", "tool_use"},
                         {"id", make_id("toolu_")},
                         {"name", call.name},
                         {"input", input_of(call)}});
    }
    Json json = message(content);
    json["stop_reason"] = stop_reason(choice.finish);
    json["stop_sequence"] = stop_sequence(choice);
    json["usage"] = usage_json(usage_of(choices));
    return json;
  }

  std::string begin() override {
    Json json = message(Json::array());
    json["stop_reason"] = nullptr;
    json["stop_sequence"] = nullptr;
    json["usage"] = {{"input_tokens", n_prompt_}, {"output_tokens", 0}};
    return event("message_start", {{"message", json}});
  }

  std::string delta(int, const Delta& delta) override {
    std::string text;
    if (!delta.thinking.empty()) {
      text += open("thinking", {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
      text += piece({{"type", "thinking_delta"}, {"thinking", delta.thinking}});
    }
    if (!delta.text.empty()) {
      text += open("text", {{"type", "text"}, {"text", ""}});
      text += piece({{"type", "text_delta"}, {"text", delta.text}});
    }
    for (const text::ToolCall& call : delta.calls) {
      text += close();
      text += open("tool_use", {{"type", "tool_use"},
                                {"id", make_id("toolu_")},
                                {"name", call.name},
                                {"input", Json::object()}});
      text += piece({{"type", "input_json_delta"}, {"partial_json", dump(input_of(call))}});
    }
    return text;
  }

  // These sums replace those of message_start: by now it is known how much was computed before.
  std::string choice_end(int, const Choice& complete) override {
    return close() + event("message_delta", {{"delta",
                                              {{"stop_reason", stop_reason(complete.finish)},
                                               {"stop_sequence", stop_sequence(complete)}}},
                                             {"usage", usage_json(usage_of({complete}))}});
  }
  std::string end(const std::vector<Choice>&) override { return event("message_stop", {}); }
  std::string failure(const ApiError& error) override {
    return sse("error", error_json(Api::anthropic, error));
  }

 private:
  Json message(const Json& content) const {
    return {{"id", id_},
            {"type", "message"},
            {"role", "assistant"},
            {"model", service_.name()},
            {"content", content}};
  }
  static std::string event(const std::string& type, const Json& fields) {
    Json json = {{"type", type}};
    json.update(fields.is_null() ? Json::object() : fields);
    return sse(type, json);
  }
  // Blocks follow each other; one of another kind ends the one before.
  std::string open(const std::string& kind, const Json& block) {
    if (open_ == kind) return "";
    std::string text = close();
    open_ = kind;
    return text + event("content_block_start", {{"index", index_}, {"content_block", block}});
  }
  std::string piece(const Json& delta) const {
    return event("content_block_delta", {{"index", index_}, {"delta", delta}});
  }
  std::string close() {
    if (open_.empty()) return "";
    open_.clear();
    return event("content_block_stop", {{"index", index_++}});
  }

  const ModelService& service_;
  size_t n_prompt_;
  std::string id_ = make_id("msg_");
  std::string open_;  // the kind of the block that is being sent; empty: none
  int index_ = 0;
};

}  // namespace

void add_messages(Router& router, const EndpointContext& all) {
  add_with_model(router, all, "/v1/messages",
                 [](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
                   const Json body = parse_body(exchange->request().body);
                   const Fields fields(body);
                   AnswerPlan plan = plan_chat(context.service, read_messages_chat(fields),
                                               read_messages_generation(fields));
                   auto format =
                       std::make_unique<MessagesFormat>(context.service, plan.prompt.size());
                   run_answer(context, std::move(exchange), std::move(plan), std::move(format));
                 });
  add_with_model(router, all, "/v1/messages/count_tokens",
                 [](const AnswerContext& context, const std::shared_ptr<Exchange>& exchange) {
                   const Json body = parse_body(exchange->request().body);
                   const AnswerPlan plan =
                       plan_chat(context.service, read_messages_chat(Fields(body)), {});
                   send_json(*exchange, {{"input_tokens", plan.prompt.size()}});
                 });
}

}  // namespace sluice::server
