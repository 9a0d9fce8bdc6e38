// See byte_vocabulary.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_vocabulary.h"

#include "base/check.h"
#include "text/tokenizer/byte_alphabet.h"

namespace sluice::text {

ByteVocabulary make_byte_vocabulary(int n_tokens) {
  CHECK(n_tokens >= kSmallestByteVocabulary);
  ByteVocabulary v;
  const auto add = [&](std::string token, TokenKind kind) {
    v.tokens.push_back(std::move(token));
    v.kinds.push_back(static_cast<int32_t>(kind));
  };
  for (const std::string& symbol : byte_alphabet()) add(symbol, TokenKind::normal);
  add("<|endoftext|>", TokenKind::control);
  add("<|im_start|>", TokenKind::control);
  v.end_of_turn = static_cast<TokenId>(v.tokens.size());
  add("<|im_end|>", TokenKind::control);
  // Readers want a list of merges. The first fillers are two merged words, where there is room.
  const std::string space = byte_alphabet()[' '];
  for (const auto& [left, right] :
       {std::pair(space, std::string("t")), std::pair(std::string("h"), std::string("e"))}) {
    v.merges.push_back(left + " " + right);
    if (std::ssize(v.tokens) < n_tokens) add(left + right, TokenKind::normal);
  }
  while (std::ssize(v.tokens) < n_tokens) {
    add("[PAD" + std::to_string(v.tokens.size()) + "]", TokenKind::unused);
  }
  return v;
}

}  // namespace sluice::text
