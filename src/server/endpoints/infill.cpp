// POST /infill: fills a gap in a text, in the words of llama.cpp's server, for editors.
// SPDX-License-Identifier: Apache-2.0
#include "server/requests/infill_fields.h"

#include <utility>

#include "server/endpoints/endpoints.h"
#include "server/endpoints/openai_parts.h"

namespace sluice::server {
namespace {

const char* stop_type(Finish finish) {
  if (finish == Finish::length) return "limit";
  return finish == Finish::stop_string ? "word" : "eos";
}

class InfillFormat : public AnswerFormat {
 public:
  InfillFormat(const ModelService& service, int n_left_out)
      : service_(service), n_left_out_(n_left_out) {}

  Json whole(const std::vector<Choice>& choices) override {
    const Choice& choice = choices.front();
    return complete(choice.text, choice);
  }
  std::string delta(int, const Delta& delta) override {
    return sse(Json{{"index", 0}, {"content", delta.text}, {"stop", false}});
  }
  std::string choice_end(int, const Choice& choice) override { return sse(complete("", choice)); }
  std::string end(const std::vector<Choice>&) override { return ""; }
  std::string failure(const ApiError& error) override {
    return sse(error_json(Api::openai, error));
  }

 private:
  Json complete(const std::string& text, const Choice& choice) const {
    const Usage usage = usage_of({choice});
    return {{"index", 0},
            {"content", text},
            {"stop", true},
            {"model", service_.name()},
            {"stop_type", stop_type(choice.finish)},
            {"stopping_word", choice.stop_text},
            {"tokens_predicted", usage.n_new},
            {"tokens_evaluated", usage.n_prompt},
            {"tokens_cached", usage.n_reused},
            {"truncated", n_left_out_ > 0},
            {"input_extra_left_out", n_left_out_},
            {"timings", timings(usage)}};
  }

  const ModelService& service_;
  int n_left_out_;
};

}  // namespace

void add_infill(Router& router, const EndpointContext& all) {
  add_with_model(
      router, all, "/infill", [](const AnswerContext& context, std::shared_ptr<Exchange> exchange) {
        const Json body = parse_body(exchange->request().body);
        FillPlan fill =
            plan_fill(context.service, read_infill(Fields(body)), read_infill_generation(body));
        auto format = std::make_unique<InfillFormat>(context.service, fill.n_left_out);
        run_answer(context, std::move(exchange), std::move(fill.plan), std::move(format));
      });
}

}  // namespace sluice::server
