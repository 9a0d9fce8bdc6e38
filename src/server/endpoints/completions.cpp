// POST /v1/completions: continues a text, as OpenAI's older endpoint does.
// SPDX-License-Identifier: Apache-2.0
#include <ctime>
#include <utility>

#include "base/error.h"
#include "server/endpoints/endpoints.h"
#include "server/endpoints/openai_parts.h"

namespace sluice::server {
namespace {

// The text behind a gap, which the answer is to fill; an empty one is none.
std::string suffix_of(const Fields& fields) { return fields.string("suffix").value_or(""); }

// The prompt is a text or the ids of tokens; or a list with one of these.
AnswerPlan plan_of(const ModelService& service, const Fields& fields) {
  GenerationFields how = read_openai_generation(fields);
  const Json* prompt = fields.find("prompt");
  if (!prompt) fields.fail("prompt", "a text, or a list of token ids");
  const bool is_single = prompt->is_array() && prompt->size() == 1 && !prompt->at(0).is_number();
  const Json given = {{"prompt", is_single ? prompt->at(0) : *prompt}};
  const Fields inside(given);
  if (const std::string suffix = suffix_of(fields); !suffix.empty()) {
    if (!given["prompt"].is_string()) inside.fail("prompt", "a text where there is a suffix");
    const std::string prefix = inside.required_string("prompt");
    return plan_fill(service, {.prefix = prefix, .suffix = suffix}, std::move(how)).plan;
  }
  if (given["prompt"].is_string()) {
    return plan_completion(service, inside.required_string("prompt"), std::move(how));
  }
  if (!given["prompt"].is_array() || given["prompt"].empty() || !given["prompt"][0].is_number()) {
    inside.fail("prompt", "one text, or a list of token ids; for several send several requests");
  }
  AnswerPlan plan;
  plan.how = std::move(how);
  plan.prompt = inside.integers("prompt");
  return plan;
}

class CompletionFormat : public AnswerFormat {
 public:
  CompletionFormat(const ModelService& service, const GenerationFields& how, std::string echoed)
      : service_(service),
        include_usage_(how.include_usage),
        with_logprobs_(how.n_top_logprobs),
        echoed_(std::move(echoed)) {}

  Json whole(const std::vector<Choice>& choices) override {
    Json json = head();
    json["choices"] = Json::array();
    for (const Choice& choice : choices) {
      json["choices"].push_back({{"index", json["choices"].size()},
                                 {"text", echoed_ + choice.text},
                                 {"logprobs", logprobs(choice.logprobs)},
                                 {"finish_reason", finish_reason(choice.finish)}});
    }
    const Usage usage = usage_of(choices);
    json["usage"] = openai_usage(usage);
    json["timings"] = timings(usage);
    return json;
  }

  std::string delta(int choice, const Delta& delta) override {
    return chunk(choice, delta.text, logprobs(delta.logprobs), nullptr);
  }
  std::string choice_end(int choice, const Choice& complete) override {
    return chunk(choice, "", nullptr, finish_reason(complete.finish));
  }
  std::string end(const std::vector<Choice>& choices) override {
    std::string text;
    if (include_usage_) {
      Json json = head();
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
  Json head() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", service_.name()}};
  }
  std::string chunk(int choice, const std::string& text, const Json& scores,
                    const Json& finish) const {
    Json json = head();
    json["choices"] = Json::array(
        {{{"index", choice}, {"text", text}, {"logprobs", scores}, {"finish_reason", finish}}});
    return sse(json);
  }
  // {"tokens", "token_logprobs", "top_logprobs"}: lists side by side.
  Json logprobs(const std::vector<TokenLogprobs>& tokens) const {
    if (!with_logprobs_) return nullptr;
    // A token may end within a character, which JSON cannot show.
    const auto piece = [&](TokenId id) {
      const Json text = service_.text().tokenizer().piece(id, /*render_special=*/true);
      return Json::parse(dump(text)).get<std::string>();
    };
    Json json = {{"tokens", Json::array()},
                 {"token_logprobs", Json::array()},
                 {"top_logprobs", Json::array()}};
    for (const TokenLogprobs& t : tokens) {
      json["tokens"].push_back(piece(t.token.id));
      json["token_logprobs"].push_back(t.token.logprob);
      Json best = Json::object();
      for (const ScoredToken& other : t.best) best[piece(other.id)] = other.logprob;
      json["top_logprobs"].push_back(best);
    }
    return json;
  }

  const ModelService& service_;
  bool include_usage_;
  bool with_logprobs_;
  std::string echoed_;  // the prompt, where it was asked for
  std::string id_ = make_id("cmpl-");
  int64_t created_ = static_cast<int64_t>(std::time(nullptr));
};

}  // namespace

void add_completions(Router& router, const EndpointContext& all) {
  const auto answer = [](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
    const Json body = parse_body(exchange->request().body);
    const Fields fields(body);
    AnswerPlan plan = plan_of(context.service, fields);
    std::string echoed;
    if (fields.boolean("echo").value_or(false)) {
      if (plan.how.stream) fields.fail("echo", "false in a stream");
      if (!suffix_of(fields).empty()) fields.fail("echo", "false where there is a suffix");
      echoed = context.service.text().tokenizer().decode(plan.prompt);
    }
    auto format = std::make_unique<CompletionFormat>(context.service, plan.how, std::move(echoed));
    run_answer(context, std::move(exchange), std::move(plan), std::move(format));
  };
  add_with_model(router, all, "/v1/completions", answer);
  add_with_model(router, all, "/completions", answer);
}

}  // namespace sluice::server
