// What a model file says about text: its tokenizer, its chat template, its sampling advice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "sampler/options.h"
#include "text/chat_template.h"
#include "text/grammar/token_trie.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::cli {

class TextModel {
 public:
  // Reads only the metadata of the file; what it warns about goes to standard error.
  explicit TextModel(const std::string& path);

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  std::vector<TokenId> end_tokens() const;
  const sampler::SamplerOptions& sampling_defaults() const { return sampling_defaults_; }
  bool has_chat_template() const { return chat_template_.has_value(); }

  // The prompt for a conversation; the texts of bos and eos and the present time are filled in.
  // Throws Errc::bad_request where there is no template, or where it refuses the conversation.
  std::string render(text::ChatInput input) const;
  // Its tokens: the control tokens of the template count as such, and bos is not added twice.
  std::vector<TokenId> encode_rendered(const std::string& prompt) const;

  // The bytes of all tokens that stand for text.
  std::shared_ptr<const text::TokenTrie> make_token_trie() const;

 private:
  explicit TextModel(const gguf::Metadata& metadata);
  std::string text_of(std::optional<TokenId> id) const;

  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  sampler::SamplerOptions sampling_defaults_;
};

}  // namespace sluice::cli
