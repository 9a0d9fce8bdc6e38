// The public interface of sluice.h on top of model/ and the stepper.
// SPDX-License-Identifier: Apache-2.0
#include "sluice/sluice.h"

#include <algorithm>

#include "base/error.h"
#include "engine/model_driver.h"
#include "engine/step/text_steps.h"

namespace sluice {

struct SLUICE_HIDDEN Session::Impl {
  Impl(std::shared_ptr<const Model::Impl> m, const SessionOptions& o, int ctx)
      : model(std::move(m)),
        options(o),
        n_ctx(ctx),
        text(engine::make_driver({.model = *model, .options = options, .reroute = make_reroute()},
                                 placement),
             model->file.metadata().origin(), options.on_routing) {}

  engine::RouteOverride make_reroute();
  void require_valid(std::span<const TokenId> tokens) const;
  engine::ModelStamp stamp() const { return engine::make_stamp(model->file, model->info.n_vocab); }

  std::shared_ptr<const Model::Impl> model;  // shared with the Model: the longer-lived keeps it
  SessionOptions options;
  int n_ctx;
  PlacementInfo placement;  // before `text`, whose driver fills it in
  engine::TextSteps text;
};

engine::RouteOverride Session::Impl::make_reroute() {
  if (!options.reroute) return {};
  return [this](LayerId layer, int64_t row, std::span<int32_t> experts) {
    options.reroute(text.first_of_step() + static_cast<int>(row), layer.value, experts);
  };
}

// Before anything is computed, so that a bad request leaves the session as it was.
void Session::Impl::require_valid(std::span<const TokenId> tokens) const {
  const int n_held = text.n_tokens();
  if (tokens.size() > static_cast<size_t>(n_ctx - n_held)) {
    throw Error(Errc::bad_request,
                cat(tokens.size(), " tokens do not fit into the context: it holds ", n_ctx, " and ",
                    n_held, " are in use; ask for a larger context (-c) or give fewer tokens"));
  }
  model->require_tokens(tokens);
}

Session::Session(const Model& model, const SessionOptions& options)
    : impl_(std::make_unique<Impl>(model.impl_, options,
                                   engine::wished_context(*model.impl_, options))) {}

Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

bool Session::append(std::span<const TokenId> tokens, const OnLogits& on_logits,
                     const PromptOptions& options) {
  impl_->require_valid(tokens);
  return impl_->text.prefill(tokens, on_logits, options);
}

GenerateResult Session::generate(std::span<const TokenId> prompt, const GenerateOptions& options,
                                 const std::function<bool(TokenId)>& on_token) {
  using Known = engine::TextSteps::Known;
  engine::TextSteps& text = impl_->text;
  if (prompt.empty() && !text.has_logits()) {
    throw Error(Errc::bad_request, "the prompt is empty; give at least one token to continue from");
  }
  if (!append(prompt, {}, options.prompt)) return {.tokens = {}, .reason = StopReason::callback};

  GenerateResult result;
  while (std::ssize(result.tokens) < options.n_tokens) {
    const bool is_given = result.tokens.size() < options.given.size();
    const TokenId token = is_given         ? options.given[result.tokens.size()]
                          : options.choose ? options.choose(text.last_logits())
                                           : text.best_token();
    if (std::ranges::find(options.end_tokens, token) != options.end_tokens.end()) {
      result.reason = StopReason::end_of_text;
      break;
    }
    result.tokens.push_back(token);
    const bool go_on = !on_token || on_token(token);
    if (n_tokens() == n_ctx()) {
      result.reason = StopReason::context_full;
      break;
    }
    impl_->require_valid({&token, 1});
    text.decode(token, options.choose ? Known::all : Known::best);
    if (!go_on) {
      result.reason = StopReason::callback;
      break;
    }
  }
  return result;
}

void Session::truncate(int n_tokens) {
  if (n_tokens < 0 || n_tokens > this->n_tokens()) {
    throw Error(Errc::bad_request, cat("cannot keep ", n_tokens, " of ", this->n_tokens(),
                                       " tokens; expected a number from 0 to that"));
  }
  impl_->text.truncate(n_tokens);
}

void Session::save(const std::string& path) { impl_->text.save(path, impl_->stamp()); }

std::vector<TokenId> Session::load(const std::string& path) {
  return impl_->text.load(path, impl_->stamp());
}

int Session::kept_tokens(int n_tokens) const {
  return impl_->text.kept_tokens(std::clamp(n_tokens, 0, this->n_tokens()));
}

int Session::n_tokens() const { return impl_->text.n_tokens(); }
int Session::n_ctx() const { return impl_->n_ctx; }
const Stats& Session::stats() const { return impl_->text.stats(); }

const PlacementInfo& Session::placement() const {
  if (impl_->options.device.kind == DeviceKind::cpu) return impl_->placement;
  return impl_->placement = impl_->text.driver().placement();
}

ExpertStats Session::expert_stats() const { return impl_->text.driver().stats(); }

}  // namespace sluice
