// POST /v1/chat/completions: OpenAI's chat.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/endpoints/openai_parts.h"

namespace sluice::server {
namespace {

Json call_json(const text::ToolCall& call) {
  return {{"id", make_id("call_")},
          {"type", "function"},
          {"function", {{"name", call.name}, {"arguments", call.arguments}}}};
}

class ChatFormat : public AnswerFormat {
 public:
  ChatFormat(const ModelService& service, const GenerationFields& how)
      : service_(service), include_usage_(how.include_usage), with_logprobs_(how.n_top_logprobs) {}

  Json whole(const std::vector<Choice>& choices) override {
    Json list = Json::array();
    for (const Choice& choice : choices) {
      Json message = {{"role", "assistant"}, {"content", choice.text}};
      if (!choice.thinking.empty()) message["reasoning_content"] = choice.thinking;
      if (!choice.calls.empty()) {
        if (choice.text.empty()) message["content"] = nullptr;
        for (const text::ToolCall& call : choice.calls) {
          message["tool_calls"].push_back(call_json(call));
        }
      }
      list.push_back({{"index", list.size()},
                      {"message", message},
                      {"logprobs", logprobs(choice.logprobs)},
                      {"finish_reason", finish_reason(choice.finish)}});
    }
    Json json = head("chat.completion");
    json["choices"] = list;
    const Usage usage = usage_of(choices);
    json["usage"] = openai_usage(usage);
    json["timings"] = timings(usage);
    return json;
  }

  std::string delta(int choice, const Delta& delta) override {
    std::string text;
    if (has_role_.size() <= static_cast<size_t>(choice)) {
      has_role_.resize(static_cast<size_t>(choice) + 1);
    }
    if (!has_role_[static_cast<size_t>(choice)]) {
      text += chunk(choice, {{"role", "assistant"}, {"content", ""}});
      has_role_[static_cast<size_t>(choice)] = true;
    }
    if (!delta.thinking.empty()) text += chunk(choice, {{"reasoning_content", delta.thinking}});
    if (!delta.text.empty() || !delta.logprobs.empty()) {
      text += chunk(choice, {{"content", delta.text}}, logprobs(delta.logprobs));
    }
    for (size_t i = 0; i < delta.calls.size(); ++i) {
      const int index = delta.first_call + static_cast<int>(i);
      text += call_chunks(choice, index, delta.calls[i]);
    }
    return text;
  }

  std::string choice_end(int choice, const Choice& complete) override {
    Json json = head("chat.completion.chunk");
    json["choices"] = Json::array({{{"index", choice},
                                    {"delta", Json::object()},
                                    {"logprobs", nullptr},
                                    {"finish_reason", finish_reason(complete.finish)}}});
    json["timings"] = timings(usage_of({complete}));
    return sse(json);
  }

  std::string end(const std::vector<Choice>& choices) override {
    std::string text;
    if (include_usage_) {
      Json json = head("chat.completion.chunk");
      json["choices"] = Json::array();
      json["usage"] = openai_usage(usage_of(choices));
      text += sse(json);
    }
    return text + "data: [DONE]\n\n";
  }

  std::string failure(const ApiError& error) override {
    return sse(error_json(Api::openai, error)) + "data: [DONE]\n\n";
  }

 private:
  Json head(const char* object) const {
    return {{"id", id_},
            {"object", object},
            {"created", created_},
            {"model", service_.name()},
            {"system_fingerprint", "sluice"}};
  }
  Json logprobs(const std::vector<TokenLogprobs>& tokens) const {
    return with_logprobs_ ? chat_logprobs(service_, tokens) : Json();
  }
  std::string chunk(int choice, const Json& delta, const Json& scores = nullptr) const {
    Json json = head("chat.completion.chunk");
    json["choices"] = Json::array(
        {{{"index", choice}, {"delta", delta}, {"logprobs", scores}, {"finish_reason", nullptr}}});
    return sse(json);
  }
  // The name first, then the arguments, as clients expect of a call that is still being written.
  std::string call_chunks(int choice, int index, const text::ToolCall& call) const {
    Json opened = call_json({call.name, ""});
    opened["index"] = index;
    const Json arguments = {{"index", index}, {"function", {{"arguments", call.arguments}}}};
    return chunk(choice, {{"tool_calls", Json::array({opened})}}) +
           chunk(choice, {{"tool_calls", Json::array({arguments})}});
  }

  const ModelService& service_;
  bool include_usage_;
  bool with_logprobs_;
  std::string id_ = make_id("chatcmpl-");
  int64_t created_ = static_cast<int64_t>(std::time(nullptr));
  std::vector<bool> has_role_;
};

}  // namespace

void add_chat_completions(Router& router, const EndpointContext& all) {
  const auto answer = [](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
    const Json body = parse_body(exchange->request().body);
    const Fields fields(body);
    fields.string("model");
    AnswerPlan plan = plan_chat(context.service, read_chat(fields), read_openai_generation(fields));
    auto format = std::make_unique<ChatFormat>(context.service, plan.how);
    run_answer(context, std::move(exchange), std::move(plan), std::move(format));
  };
  add_with_model(router, all, "/v1/chat/completions", answer);
  add_with_model(router, all, "/chat/completions", answer);
}

}  // namespace sluice::server
