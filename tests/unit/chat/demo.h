// The demo model, loaded once, and what makes answers with it: greedily, so that equal prompts have
// equal answers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "chat/dialogue.h"
#include "chat/sampling.h"
#include "sluice/chat.h"

namespace sluice::chat {

inline const Model& demo_model() {
  static const Model model = Model::load(find_model("demo-attn"), {.n_threads = 1});
  return model;
}

inline const TextModel& demo_text() {
  static const TextModel text(demo_model().info().path, TextModel::Use::chat);
  return text;
}

// A dialogue with a session of its own.
struct Talk {
  explicit Talk(const SessionOptions& session_options = {}, DialogueOptions options = {})
      : session(demo_model(), session_options),
        dialogue({session, demo_text(), chooser}, options) {}

  Answer ask(const std::string& message, Listener listener = {}) {
    if (!listener.on_text) listener.on_text = [](bool, std::string_view) {};
    return dialogue.ask(message, listener);
  }

  Session session;
  Chooser chooser{resolve_sampling({.temp = 0.0f, .seed = 1}, demo_text()),
                  demo_text().tokenizer().n_tokens(), nullptr};
  Dialogue dialogue;
};

}  // namespace sluice::chat
