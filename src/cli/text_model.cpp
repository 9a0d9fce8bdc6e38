// See text_model.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/text_model.h"

#include <chrono>
#include <cstdio>
#include <ctime>

#include "base/error.h"
#include "gguf/model_file.h"
#include "model/sampling_defaults.h"
#include "model/tokenizer_data.h"

namespace sluice::cli {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

std::chrono::local_seconds local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  return std::chrono::local_seconds(std::chrono::seconds(now + parts.tm_gmtoff));
}

}  // namespace

TextModel::TextModel(const std::string& path) : TextModel(gguf::ModelFile::open(path).metadata()) {}

TextModel::TextModel(const gguf::Metadata& metadata)
    : tokenizer_(model::read_tokenizer_data(metadata)),
      sampling_defaults_(model::read_sampling_defaults(metadata)) {
  if (metadata.contains(kTemplateKey)) chat_template_.emplace(metadata.get_string(kTemplateKey));
  for (const std::string& warning : tokenizer_.warnings()) {
    std::fprintf(stderr, "sluice: warning: %s\n", warning.c_str());
  }
}

std::vector<TokenId> TextModel::end_tokens() const {
  const auto ends = tokenizer_.end_of_generation();
  return {ends.begin(), ends.end()};
}

std::string TextModel::text_of(std::optional<TokenId> id) const {
  return id ? tokenizer_.token_text(*id) : "";
}

std::string TextModel::render(text::ChatInput input) const {
  if (!chat_template_) {
    throw Error(Errc::bad_request,
                "the model has no chat template, so it cannot chat; give a text to continue, with "
                "-p and --raw");
  }
  input.bos_token = text_of(tokenizer_.bos());
  input.eos_token = text_of(tokenizer_.eos());
  input.now = local_now();
  return chat_template_->render(input);
}

std::vector<TokenId> TextModel::encode_rendered(const std::string& prompt) const {
  const std::string bos = text_of(tokenizer_.bos());
  const bool has_bos = !bos.empty() && prompt.starts_with(bos);
  return tokenizer_.encode(prompt, {.add_special = !has_bos, .parse_special = true});
}

std::shared_ptr<const text::TokenTrie> TextModel::make_token_trie() const {
  std::vector<std::string> bytes(static_cast<size_t>(tokenizer_.n_tokens()));
  for (TokenId id = 0; id < tokenizer_.n_tokens(); ++id) {
    bytes[static_cast<size_t>(id)] = tokenizer_.piece(id, /*render_special=*/false);
  }
  return std::make_shared<const text::TokenTrie>(std::move(bytes));
}

}  // namespace sluice::cli
