// See text_model.h.
// SPDX-License-Identifier: Apache-2.0
#include "chat/text_model.h"

#include <chrono>
#include <ctime>

#include "base/check.h"
#include "base/error.h"
#include "gguf/model_file.h"
#include "model_file/sampling_defaults.h"
#include "model_file/tokenizer_data.h"

namespace sluice::chat {
namespace {

constexpr std::string_view kTemplateKey = "tokenizer.chat_template";

std::chrono::local_seconds local_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  localtime_r(&now, &parts);
  return std::chrono::local_seconds(std::chrono::seconds(now + parts.tm_gmtoff));
}

text::ChatTemplate read_template(const gguf::Metadata& metadata) {
  if (!metadata.contains(kTemplateKey)) {
    throw Error(Errc::bad_request,
                cat(metadata.origin(),
                    " has no chat template, so it cannot chat; give it a plain text to continue "
                    "(sluice run: -p and --raw)"));
  }
  const std::string& source = metadata.get_string(kTemplateKey);
  try {
    return text::ChatTemplate(source);
  } catch (const Error& error) {
    throw Error(error.code(),
                cat(metadata.origin(), ": ", error.what(),
                    "; the model cannot chat, but continue a plain text (sluice run: -p and "
                    "--raw)"));
  }
}

}  // namespace

std::string Prompt::shown() const {
  return is_marked ? text::ControlMarks::without_marks(text) : text;
}

TextModel::TextModel(const std::string& path, Use use)
    : TextModel(gguf::ModelFile::open(path).metadata(), use) {}

TextModel::TextModel(const gguf::Metadata& metadata, Use use)
    : tokenizer_(model_file::read_tokenizer_data(metadata)),
      marks_(tokenizer_),
      sampling_defaults_(model_file::read_sampling_defaults(metadata)) {
  const auto never = tokenizer_.suppress_tokens();
  sampling_defaults_.suppressed.assign(never.begin(), never.end());
  if (use == Use::chat) chat_template_.emplace(read_template(metadata));
}

std::vector<TokenId> TextModel::end_tokens() const {
  const auto ends = tokenizer_.end_of_generation();
  return {ends.begin(), ends.end()};
}

std::string TextModel::text_of(std::optional<TokenId> id) const {
  return id ? tokenizer_.token_text(*id) : "";
}

Prompt TextModel::render(text::ChatInput input, Messages messages) const {
  CHECK(chat_template_);
  const bool is_marked = messages == Messages::text;
  if (is_marked) marks_.mark(input);
  input.bos_token = text_of(tokenizer_.bos());
  input.eos_token = text_of(tokenizer_.eos());
  input.now = local_now();
  return {.text = chat_template_->render(input), .is_marked = is_marked};
}

std::vector<TokenId> TextModel::encode(const std::string& text, text::EncodeOptions options) const {
  std::vector<TokenId> tokens = tokenizer_.encode(text, options);
  if (options.add_special && tokenizer_.adds_eos()) tokens.pop_back();
  return tokens;
}

std::vector<TokenId> TextModel::encode_prompt(const Prompt& prompt) const {
  const std::string bos = text_of(tokenizer_.bos());
  const bool has_bos = !bos.empty() && prompt.text.starts_with(bos);
  const std::string_view mark = prompt.is_marked ? text::ControlMarks::kMark : std::string_view();
  return encode(prompt.text, {.add_special = !has_bos, .parse_special = true, .mark = mark});
}

std::vector<int> TextModel::ends_of_messages(std::span<const TokenId> prompt,
                                             size_t n_before) const {
  std::vector<int> ends;
  for (size_t i = n_before; i < prompt.size(); ++i) {
    if (tokenizer_.is_end_of_generation(prompt[i])) ends.push_back(static_cast<int>(i + 1));
  }
  return ends;
}

std::vector<TokenId> TextModel::encode_plain(const std::string& text) const {
  return encode(text, {.add_special = true, .parse_special = false});
}

std::shared_ptr<const text::TokenTrie> TextModel::make_token_trie() const {
  std::vector<std::string> bytes(static_cast<size_t>(tokenizer_.n_tokens()));
  for (TokenId id = 0; id < tokenizer_.n_tokens(); ++id) {
    bytes[static_cast<size_t>(id)] = tokenizer_.piece(id, /*render_special=*/false);
  }
  return std::make_shared<const text::TokenTrie>(std::move(bytes));
}

}  // namespace sluice::chat
