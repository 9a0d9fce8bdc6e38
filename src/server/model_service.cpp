// See model_service.h.
// SPDX-License-Identifier: Apache-2.0
#include "server/model_service.h"

#include <ctime>
#include <utility>

#include "base/error.h"
#include "text/grammar/gbnf.h"
#include "text/json_schema/json_schema.h"

namespace sluice::server {
namespace {

constexpr size_t kMostMatchers = 16;  // that are kept

chat::TextModel open_text(const std::string& path) {
  try {
    return chat::TextModel(path, chat::TextModel::Use::chat);
  } catch (const Error&) {  // no template, or none that runs: it still continues texts
    return chat::TextModel(path, chat::TextModel::Use::plain_text);
  }
}

text::Grammar compile(const Constraint& constraint) {
  switch (constraint.kind) {
    case Constraint::Kind::json_schema:
      return text::compile_json_schema(constraint.text);
    case Constraint::Kind::gbnf:
      return text::compile_gbnf(constraint.text);
    default:
      return text::compile_json_object();
  }
}

}  // namespace

ModelService::ModelService(const Model& model, EngineOptions options, std::string name)
    : name_(std::move(name)),
      info_(model.info()),
      text_(open_text(info_.path)),
      options_(std::move(options)),
      started_(static_cast<int64_t>(std::time(nullptr))),
      engine_(std::make_unique<Engine>(model, options_)) {}

std::unique_ptr<text::GrammarMatcher> ModelService::make_matcher(
    const Constraint& constraint) const {
  if (!constraint) return nullptr;
  {
    const std::scoped_lock lock(mutex_);
    if (!trie_) trie_ = text_.make_token_trie();
    if (const auto found = matchers_.find(constraint); found != matchers_.end()) {
      return std::make_unique<text::GrammarMatcher>(*found->second);
    }
  }
  auto matcher = std::make_shared<const text::GrammarMatcher>(
      std::make_shared<const text::Grammar>(compile(constraint)), trie_, text_.end_tokens());
  const std::scoped_lock lock(mutex_);
  if (matchers_.size() >= kMostMatchers) matchers_.clear();
  matchers_.emplace(constraint, matcher);
  return std::make_unique<text::GrammarMatcher>(*matcher);
}

}  // namespace sluice::server
