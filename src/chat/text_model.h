// What a model file says about text: its tokenizer, its chat template, its sampling advice.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "sampler/options.h"
#include "text/chat_template.h"
#include "text/control_marks.h"
#include "text/grammar/token_trie.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::chat {

// What a model is given, as text. In a chat, the texts of the messages hold marks wherever they
// might be read as control tokens (text/control_marks.h).
struct Prompt {
  std::string text;
  bool is_marked = false;

  std::string shown() const;  // without marks
};

class TextModel {
 public:
  enum class Use { chat, plain_text };

  // Reads only the metadata of the file. The chat template is looked at only for a chat, which
  // throws where there is none or a broken one.
  TextModel(const std::string& path, Use use);

  // What a person should know before using it; often nothing.
  std::span<const std::string> warnings() const { return tokenizer_.warnings(); }

  const text::Tokenizer& tokenizer() const { return tokenizer_; }
  std::vector<TokenId> end_tokens() const;
  const sampler::SamplerOptions& sampling_defaults() const { return sampling_defaults_; }

  // Whether control tokens that people write in messages count as such, or are text.
  enum class Messages { text, control_tokens };

  bool has_template() const { return chat_template_.has_value(); }
  // Whether the chat template looks at the variable: "tools", "enable_thinking".
  bool template_mentions(std::string_view variable) const {
    return chat_template_ && chat_template_->mentions(variable);
  }

  // The prompt for a conversation; the texts of bos and eos and the present time are filled in.
  // Throws Errc::bad_request where the template refuses the conversation.
  Prompt render(text::ChatInput input, Messages messages = Messages::text) const;

  // The tokens of a text to be continued: control tokens in it count as such, bos is not added
  // twice, and eos never.
  std::vector<TokenId> encode_prompt(const Prompt& prompt) const;
  // Where a later prompt may differ from this one, from the n_before-th token on: a message may be
  // edited, or shown without its thoughts.
  std::vector<int> ends_of_messages(std::span<const TokenId> prompt, size_t n_before = 0) const;
  // Those of a text to be scored: here control tokens are text like any other.
  std::vector<TokenId> encode_plain(const std::string& text) const;

  // The bytes of all tokens that stand for text.
  std::shared_ptr<const text::TokenTrie> make_token_trie() const;

 private:
  TextModel(const gguf::Metadata& metadata, Use use);
  std::vector<TokenId> encode(const std::string& text, text::EncodeOptions options) const;
  std::string text_of(std::optional<TokenId> id) const;

  text::Tokenizer tokenizer_;
  std::optional<text::ChatTemplate> chat_template_;
  text::ControlMarks marks_;
  sampler::SamplerOptions sampling_defaults_;
};

}  // namespace sluice::chat
