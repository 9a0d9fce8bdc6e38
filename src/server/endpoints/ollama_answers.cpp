// POST /api/chat and /api/generate: answers as Ollama gives them, a line of JSON for each piece.
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <ctime>
#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/requests/ollama_fields.h"

namespace sluice::server {
namespace {

enum class OllamaKind { chat, generate };

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  std::array<char, 32> text;
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

int64_t nanoseconds(double seconds) { return static_cast<int64_t>(seconds * 1e9); }

class OllamaFormat : public AnswerFormat {
 public:
  OllamaFormat(const ModelService& service, OllamaKind kind) : service_(service), kind_(kind) {}

  std::string content_type() const override { return "application/x-ndjson"; }

  Json whole(const std::vector<Choice>& choices) override {
    const Choice& choice = choices.front();
    Json json = piece(choice.text, choice.thinking, choice.calls);
    json.update(last(choice));
    return json;
  }
  std::string delta(int, const Delta& delta) override {
    Json json = piece(delta.text, delta.thinking, delta.calls);
    json["done"] = false;
    return dump(json) + "\n";
  }
  std::string choice_end(int, const Choice& complete) override {
    Json json = piece("", "", {});
    json.update(last(complete));
    return dump(json) + "\n";
  }
  std::string end(const std::vector<Choice>&) override { return ""; }
  std::string failure(const ApiError& error) override {
    return dump(error_json(Api::ollama, error)) + "\n";
  }

 private:
  Json piece(const std::string& text, const std::string& thinking,
             const std::vector<text::ToolCall>& calls) const {
    Json json = {{"model", service_.name()}, {"created_at", now_text()}};
    if (kind_ == OllamaKind::generate) {
      json["response"] = text;
      if (!thinking.empty()) json["thinking"] = thinking;
      return json;
    }
    Json message = {{"role", "assistant"}, {"content", text}};
    if (!thinking.empty()) message["thinking"] = thinking;
    for (const text::ToolCall& call : calls) {
      const Json arguments = Json::parse(call.arguments, nullptr, /*allow_exceptions=*/false);
      message["tool_calls"].push_back(
          {{"function",
            {{"name", call.name},
             {"arguments", arguments.is_object() ? arguments : Json::object()}}}});
    }
    json["message"] = message;
    return json;
  }
  static Json last(const Choice& choice) {
    const RequestEnd& end = *choice.end;
    return {{"done", true},
            {"done_reason", choice.finish == Finish::length ? "length" : "stop"},
            {"total_duration",
             nanoseconds(end.queue_seconds + end.prompt_seconds + end.decode_seconds)},
            {"load_duration", 0},
            {"prompt_eval_count", end.n_prompt},
            {"prompt_eval_duration", nanoseconds(end.prompt_seconds)},
            {"eval_count", end.n_new},
            {"eval_duration", nanoseconds(end.decode_seconds)}};
  }

  const ModelService& service_;
  OllamaKind kind_;
};

// How long the model stays when this answer, or a later one, is complete.
void keep(ModelHost& host, const Fields& fields) {
  const std::optional<double> seconds = read_keep_alive(fields);
  if (seconds) host.set_keep_alive(*seconds < 0.0 ? std::nullopt : seconds);
}

}  // namespace

void add_ollama_answers(Router& router, const EndpointContext& all) {
  add_with_model(router, all, "/api/chat",
                 [&all](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
                   const Json body = parse_body(exchange->request().body);
                   const Fields fields(body);
                   keep(all.host, fields);
                   AnswerPlan plan = plan_chat(context.service, read_ollama_chat(fields),
                                               read_ollama_generation(fields));
                   run_answer(context, std::move(exchange), std::move(plan),
                              std::make_unique<OllamaFormat>(context.service, OllamaKind::chat));
                 });
  add_with_model(
      router, all, "/api/generate",
      [&all](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
        const Json body = parse_body(exchange->request().body);
        const Fields fields(body);
        keep(all.host, fields);
        GenerationFields how = read_ollama_generation(fields);
        const bool is_raw = fields.boolean("raw").value_or(false);
        const std::string suffix = fields.string("suffix").value_or("");
        AnswerPlan plan;
        if (!suffix.empty()) {
          const text::FillInput gap{.prefix = fields.required_string("prompt"), .suffix = suffix};
          plan = plan_fill(context.service, gap, std::move(how)).plan;
        } else if (is_raw) {
          plan = plan_completion(context.service, fields.required_string("prompt"), std::move(how));
        } else {
          plan = plan_chat(context.service, read_ollama_prompt(fields), std::move(how));
        }
        run_answer(context, std::move(exchange), std::move(plan),
                   std::make_unique<OllamaFormat>(context.service, OllamaKind::generate));
      });
}

}  // namespace sluice::server
