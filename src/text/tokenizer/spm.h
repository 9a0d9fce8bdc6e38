// Byte-pair encoding as SentencePiece does it: text begins as its characters, and the adjacent pair
// whose concatenation is the token of the highest score is merged, again and again. There are no
// pieces; a space is written U+2581. Knows no special tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/merge.h"
#include "text/tokenizer/vocabulary.h"

namespace sluice::text {

// U+2581, which stands for a space in the texts of tokens.
constexpr std::string_view kSpmSpace = "\xe2\x96\x81";

// Safe to use from several threads, each with its own MergeSequence.
class Spm {
 public:
  // Throws Errc::bad_file where there are no scores, or one is not a number. Does not keep the
  // vocabulary.
  explicit Spm(const Vocabulary& vocabulary);

  // Appends the tokens of `text`, in which spaces are U+2581 already. A character that is no token
  // becomes byte tokens, `<0x0A>`, and so does a byte that is not UTF-8; a byte without such a
  // token becomes the unknown token, or nothing where there is none.
  void encode(std::string_view text, MergeSequence& scratch, std::vector<TokenId>& out) const;

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };

  Symbol symbol_of(std::string_view character) const;
  void add_characters(std::string_view text, Symbol& next);
  void add_merges(const Vocabulary& vocabulary, TokenId token, int32_t rank);
  void add_neighbours(std::string_view text);
  void encode_stretch(std::string_view text, MergeSequence& scratch,
                      std::vector<TokenId>& out) const;
  void emit_bytes(std::string_view bytes, std::vector<TokenId>& out) const;

  // Symbols are token ids, and numbers above them for the characters that occur in tokens without
  // being one. All other characters share one symbol, which never merges.
  Symbol n_tokens_;
  Symbol stranger_ = 0;
  std::unordered_map<std::string, Symbol, Hash, std::equal_to<>> characters_;
  MergeTable merges_;
  // The characters that stand side by side in some token. Between two others nothing ever merges,
  // so text falls into short stretches there: 1 MB of prose takes half the time.
  MergeTable neighbours_;
  std::array<std::optional<TokenId>, 256> byte_tokens_;
  std::optional<TokenId> unknown_;
};

// The byte that a token with the text `<0xXX>` stands for; nothing for any other text.
std::optional<uint8_t> byte_of_token(std::string_view text);

}  // namespace sluice::text
