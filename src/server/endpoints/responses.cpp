// POST /v1/responses: OpenAI's newer chat. Nothing is kept between requests.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/requests/responses_fields.h"

namespace sluice::server {
namespace {

Json output_text(const std::string& text) {
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}};
}

class ResponsesFormat : public AnswerFormat {
 public:
  explicit ResponsesFormat(const ModelService& service) : service_(service) {}

  Json whole(const std::vector<Choice>& choices) override {
    const Choice& choice = choices.front();
    std::string ignored;  // the events of a stream make the items
    ignored += delta(0, {.text = choice.text, .thinking = choice.thinking, .calls = choice.calls});
    ignored += close();
    return complete(choice);
  }

  std::string begin() override {
    const Json response = base("in_progress");
    std::string text = event("response.created", {{"response", response}});
    text += event("response.in_progress", {{"response", response}});
    return text;
  }

  std::string delta(int, const Delta& delta) override {
    std::string text;
    if (!delta.thinking.empty()) text += add_thinking(delta.thinking);
    if (!delta.text.empty()) text += add_text(delta.text);
    for (const text::ToolCall& call : delta.calls) text += add_call(call);
    return text;
  }

  std::string choice_end(int, const Choice& choice) override {
    std::string text = close();
    const bool is_cut = choice.finish == Finish::length;
    return text + event(is_cut ? "response.incomplete" : "response.completed",
                        {{"response", complete(choice)}});
  }
  std::string end(const std::vector<Choice>&) override { return ""; }
  std::string failure(const ApiError& error) override {
    return event("error",
                 {{"code", error.code()}, {"message", error.what()}, {"param", error.param()}});
  }

 private:
  Json base(const char* status) const {
    return {{"id", id_},
            {"object", "response"},
            {"created_at", created_},
            {"status", status},
            {"error", nullptr},
            {"incomplete_details", nullptr},
            {"model", service_.name()},
            {"output", items_},
            {"parallel_tool_calls", true},
            {"store", false},
            {"usage", nullptr}};
  }
  Json complete(const Choice& choice) const {
    const bool is_cut = choice.finish == Finish::length;
    Json json = base(is_cut ? "incomplete" : "completed");
    if (is_cut) json["incomplete_details"] = {{"reason", "max_output_tokens"}};
    const RequestEnd& end = *choice.end;
    json["usage"] = {{"input_tokens", end.n_prompt},
                     {"input_tokens_details", {{"cached_tokens", end.n_reused}}},
                     {"output_tokens", end.n_new},
                     {"output_tokens_details", {{"reasoning_tokens", 0}}},
                     {"total_tokens", end.n_prompt + end.n_new}};
    return json;
  }
  std::string event(const std::string& type, Json fields) {
    Json json = {{"type", type}, {"sequence_number", n_events_++}};
    json.update(fields);
    return sse(type, json);
  }

  // Items follow each other; one of another kind ends the one before.
  std::string open(const std::string& kind, const Json& item) {
    std::string text = close();
    open_ = kind;
    items_.push_back(item);
    return text + event("response.output_item.added",
                        {{"output_index", items_.size() - 1}, {"item", item}});
  }
  Json place() const {
    return {{"item_id", items_.back()["id"]},
            {"output_index", items_.size() - 1},
            {"content_index", 0}};
  }
  Json at(const Json& fields) const {
    Json json = place();
    json.update(fields);
    return json;
  }
  std::string add_thinking(const std::string& piece) {
    std::string text;
    if (open_ != "reasoning") {
      text += open("reasoning",
                   {{"type", "reasoning"},
                    {"id", make_id("rs_")},
                    {"summary", Json::array()},
                    {"content", Json::array({{{"type", "reasoning_text"}, {"text", ""}}})}});
    }
    append(piece);
    return text + event("response.reasoning_text.delta", at({{"delta", piece}}));
  }
  std::string add_text(const std::string& piece) {
    std::string text;
    if (open_ != "message") {
      text += open("message", {{"type", "message"},
                               {"id", make_id("msg_")},
                               {"status", "in_progress"},
                               {"role", "assistant"},
                               {"content", Json::array()}});
      items_.back()["content"].push_back(output_text(""));
      text += event("response.content_part.added", at({{"part", output_text("")}}));
    }
    append(piece);
    return text + event("response.output_text.delta", at({{"delta", piece}}));
  }
  void append(const std::string& piece) {
    Json& text = items_.back()["content"][0]["text"];
    text = text.get<std::string>() + piece;
  }
  std::string add_call(const text::ToolCall& call) {
    std::string text = open("function_call", {{"type", "function_call"},
                                              {"id", make_id("fc_")},
                                              {"call_id", make_id("call_")},
                                              {"name", call.name},
                                              {"arguments", ""},
                                              {"status", "in_progress"}});
    items_.back()["arguments"] = call.arguments;
    Json where = place();
    where.erase("content_index");
    Json delta = where;
    delta["delta"] = call.arguments;
    where["arguments"] = call.arguments;
    text += event("response.function_call_arguments.delta", delta);
    text += event("response.function_call_arguments.done", where);
    text += close();
    return text;
  }
  std::string close() {
    if (open_.empty()) return "";
    std::string text;
    Json& item = items_.back();
    if (item.contains("status")) item["status"] = "completed";
    if (open_ == "message") {
      const Json part = item["content"][0];
      text += event("response.output_text.done", at({{"text", part["text"]}}));
      text += event("response.content_part.done", at({{"part", part}}));
    }
    open_.clear();
    return text + event("response.output_item.done",
                        {{"output_index", items_.size() - 1}, {"item", item}});
  }

  const ModelService& service_;
  std::string id_ = make_id("resp_");
  int64_t created_ = static_cast<int64_t>(std::time(nullptr));
  Json items_ = Json::array();
  std::string open_;  // the type of the item that is being sent; empty: none
  int n_events_ = 0;
};

}  // namespace

void add_responses(Router& router, const EndpointContext& all) {
  add_with_model(router, all, "/v1/responses",
                 [](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
                   const Json body = parse_body(exchange->request().body);
                   const Fields fields(body);
                   AnswerPlan plan = plan_chat(context.service, read_responses_chat(fields),
                                               read_responses_generation(fields));
                   run_answer(context, std::move(exchange), std::move(plan),
                              std::make_unique<ResponsesFormat>(context.service));
                 });
}

}  // namespace sluice::server
