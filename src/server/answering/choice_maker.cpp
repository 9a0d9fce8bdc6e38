// See choice_maker.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/answering/choice_maker.h"

#include <utility>

#include "chat/sampling.h"
#include "server/answering/logprobs.h"

namespace sluice::server {
namespace {

sampler::SamplerOptions sampling_of(const ModelService& service, const GenerationFields& how,
                                    int index) {
  sampler::SamplerOptions options =
      chat::resolve_sampling(how.sampling, service.text(), how.dry_breakers);
  if (index > 0) options.seed = (*options.seed + static_cast<uint32_t>(index)) & 0x7FFFFFFF;
  return options;
}

text::ToolCallSplitter::State splitter_start(AnswerPlan::Calls calls) {
  using State = text::ToolCallSplitter::State;
  return calls == AnswerPlan::Calls::opened ? State::call : State::text;
}

}  // namespace

ChoiceMaker::ChoiceMaker(const ModelService& service, const AnswerPlan& plan, int index)
    : service_(service),
      chooser_(sampling_of(service, plan.how, index), service.text().tokenizer().n_tokens(),
               service.make_matcher(plan.how.constraint)),
      n_top_(plan.how.n_top_logprobs),
      calls_(
          splitter_start(plan.calls), [this](std::string_view text) { delta_.text += text; },
          [this](text::ToolCall call) {
            ++n_calls_;
            delta_.calls.push_back(std::move(call));
          }),
      takes_calls_(plan.calls != AnswerPlan::Calls::text),
      pipe_(plan.how.stops, plan.start, [this](bool is_thinking, std::string_view text) {
        if (is_thinking) {
          delta_.thinking += text;
        } else if (takes_calls_) {
          calls_.push(text);
        } else {
          delta_.text += text;
        }
      }) {
  chooser_.begin(plan.prompt);
}

TokenId ChoiceMaker::choose(std::span<const float> logits) {
  const TokenId token = chooser_.choose(logits);
  if (n_top_) scored_ = logprobs_of(logits, token, *n_top_);
  return token;
}

bool ChoiceMaker::push(TokenId token) {
  if (scored_) delta_.logprobs.push_back(*std::exchange(scored_, std::nullopt));
  return pipe_.push(service_.text().tokenizer().piece(token, /*render_special=*/false));
}

void ChoiceMaker::finish() {
  pipe_.finish();
  if (takes_calls_) calls_.finish();
}

Delta ChoiceMaker::take() {
  delta_.first_call = n_calls_ - static_cast<int>(delta_.calls.size());
  return std::exchange(delta_, {});
}

Finish ChoiceMaker::finish_of(StopReason reason) const {
  if (n_calls_ > 0) return Finish::tool_calls;
  if (pipe_.stopped()) return Finish::stop_string;
  const bool ran_out = reason == StopReason::length || reason == StopReason::context_full;
  return ran_out ? Finish::length : Finish::stop;
}

}  // namespace sluice::server
