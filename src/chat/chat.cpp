// The public interface of sluice/chat.h on top of a dialogue.
// SPDX-License-Identifier: Apache-2.0
#include "sluice/chat.h"

#include <utility>

#include "chat/chooser.h"
#include "chat/dialogue.h"
#include "chat/sampling.h"
#include "chat/text_model.h"

namespace sluice {
namespace {

sampler::SamplerOptions wishes(const ChatOptions& options) {
  return {.temp = options.temperature,
          .top_k = options.top_k,
          .top_p = options.top_p,
          .min_p = options.min_p,
          .seed = options.seed};
}

chat::DialogueOptions dialogue_options(const ChatOptions& options) {
  using Messages = chat::TextModel::Messages;
  return {.answer = {.n_tokens = options.n_tokens, .stops = options.stops},
          .enable_thinking = options.thinking,
          .messages = options.parse_special ? Messages::control_tokens : Messages::text,
          .on_prompt = {}};
}

}  // namespace

struct SLUICE_HIDDEN Chat::Impl {
  Impl(const Model& model, const ChatOptions& o)
      : options(o),
        text_model(model.info().path, chat::TextModel::Use::chat),
        session(model, o.session),
        chooser(chat::resolve_sampling(wishes(o), text_model), text_model.tokenizer().n_tokens(),
                /*matcher=*/nullptr),
        dialogue({session, text_model, chooser}, dialogue_options(o)),
        warnings(text_model.warnings().begin(), text_model.warnings().end()) {
    dialogue.conversation().set_system(options.system);
    const auto& more = session.placement().warnings;
    warnings.insert(warnings.end(), more.begin(), more.end());
  }

  ChatOptions options;
  chat::TextModel text_model;
  Session session;
  chat::Chooser chooser;
  chat::Dialogue dialogue;
  std::vector<std::string> warnings;
  std::string thinking;
};

Chat::Chat(const Model& model, const ChatOptions& options)
    : impl_(std::make_unique<Impl>(model, options)) {}
Chat::Chat(const std::string& model, const ChatOptions& options)
    : Chat(Model::load(find_model(model)), options) {}

Chat::~Chat() = default;
Chat::Chat(Chat&&) noexcept = default;
Chat& Chat::operator=(Chat&&) noexcept = default;

std::string Chat::ask(const std::string& message, const OnText& on_text) {
  bool goes_on = true;
  const chat::Listener listener{
      .on_text =
          [&](bool is_thinking, std::string_view text) {
            if (on_text && goes_on && !is_thinking) goes_on = on_text(text);
          },
      .interrupted =
          [&] { return !goes_on || (impl_->options.should_stop && impl_->options.should_stop()); },
      .on_progress = impl_->options.prompt_progress};
  chat::Answer answer = impl_->dialogue.ask(message, listener);
  impl_->thinking = std::move(answer.thinking);
  return std::move(answer.text);
}

const std::string& Chat::thinking() const { return impl_->thinking; }

void Chat::reset() { impl_->dialogue.conversation().clear(); }

const Stats& Chat::stats() const { return impl_->session.stats(); }

const PlacementInfo& Chat::placement() const { return impl_->session.placement(); }

const std::vector<std::string>& Chat::warnings() const { return impl_->warnings; }

}  // namespace sluice
