// The tokens of a model by id and by text, checked for sense. Neither cuts text nor merges.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/tokenizer_data.h"

namespace sluice::text {

// Move-only: what finds a token by text borrows the texts.
class Vocabulary {
 public:
  // Throws Errc::bad_file for lists of different lengths and ids without a token.
  explicit Vocabulary(TokenizerData data);
  Vocabulary(Vocabulary&&) noexcept = default;
  Vocabulary& operator=(Vocabulary&&) noexcept = default;

  // As given, but for what set_kind() and ids() changed; kinds has an entry for each token.
  const TokenizerData& data() const { return data_; }
  SpecialIds& ids() { return data_.ids; }

  int n_tokens() const { return static_cast<int>(data_.tokens.size()); }
  const std::string& text(TokenId id) const { return data_.tokens[index(id)]; }
  TokenKind kind(TokenId id) const { return data_.kinds[index(id)]; }
  void set_kind(TokenId id, TokenKind kind) { data_.kinds[index(id)] = kind; }

  // By the text as the file writes it; of several tokens with one text the last.
  std::optional<TokenId> find(std::string_view text) const;

  // As find(), but only what plain text may become. The rest is reached by special tokens alone, so
  // that no wording of a text can turn into one of them.
  std::optional<TokenId> find_plain(std::string_view text) const;

 private:
  static size_t index(TokenId id) { return static_cast<size_t>(id); }

  TokenizerData data_;
  std::unordered_map<std::string_view, TokenId> by_text_;  // borrows data_.tokens
};

}  // namespace sluice::text
