// Byte-level byte-pair encoding: a piece of text begins as its bytes, and the adjacent pair that
// training merged first is merged, again and again. Knows neither pre-tokenizers nor special
// tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer/merge.h"
#include "text/tokenizer/vocabulary.h"

namespace sluice::text {

// Safe to use from several threads, each with its own MergeSequence.
class Bpe {
 public:
  // Throws Errc::bad_file for a merge that is not two words. Does not keep the vocabulary.
  explicit Bpe(const Vocabulary& vocabulary);

  // Appends the tokens of one piece. A byte without a token becomes the unknown token, or nothing
  // where there is none.
  void encode(std::string_view piece, MergeSequence& scratch, std::vector<TokenId>& out) const;

 private:
  void emit_bytes(std::string_view bytes, std::vector<TokenId>& out) const;

  // Symbols are token ids, and numbers above them for words that merging passes through without
  // their being tokens.
  Symbol n_tokens_;
  std::array<Symbol, 256> byte_symbols_;
  MergeTable merges_;
  std::optional<TokenId> unknown_;
};

// Bytes as byte-level BPE writes them in the texts of tokens (byte_alphabet.h), and back. A
// character that stands for no byte stays as it is.
void append_in_byte_alphabet(std::string_view bytes, std::string& out);
std::string from_byte_alphabet(std::string_view text);

}  // namespace sluice::text
