// The model that is served: its engine, its text, and what requests share of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "chat/text_model.h"
#include "server/requests/generation_fields.h"
#include "sluice/engine.h"
#include "text/grammar/matcher.h"

namespace sluice::server {

// All const members may be called from several threads.
class ModelService {
 public:
  // The name is what clients see.
  ModelService(const Model& model, EngineOptions options, std::string name);

  const std::string& name() const { return name_; }
  const ModelInfo& info() const { return info_; }
  const chat::TextModel& text() const { return text_; }
  Engine& engine() const { return *engine_; }
  int n_ctx() const { return engine_->n_ctx(); }
  const EngineOptions& options() const { return options_; }
  int64_t started() const { return started_; }  // seconds since 1970

  // Holds an answer to a constraint; null for none. Throws Error (bad_request) for one that cannot
  // be compiled. Those used lately are kept, with what they have learned about the vocabulary.
  std::unique_ptr<text::GrammarMatcher> make_matcher(const Constraint& constraint) const;

 private:
  std::string name_;
  ModelInfo info_;
  chat::TextModel text_;
  EngineOptions options_;
  int64_t started_;
  std::unique_ptr<Engine> engine_;

  mutable std::mutex mutex_;
  mutable std::shared_ptr<const text::TokenTrie> trie_;
  mutable std::map<Constraint, std::shared_ptr<const text::GrammarMatcher>> matchers_;
};

}  // namespace sluice::server
