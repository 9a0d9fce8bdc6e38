// A vocabulary for models that were never trained on text: one token for each byte, so that any
// text has an encoding, three special tokens, and fillers up to the wanted size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"

namespace sluice::text {

// The values are the file's token_type ids.
enum class TokenKind : int32_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6,
};

struct ByteVocabulary {
  std::vector<std::string> tokens;  // token b stands for byte b
  std::vector<int32_t> kinds;       // TokenKind, as files store it
  std::vector<std::string> merges;
  TokenId end_of_turn = 0;
};

constexpr int kSmallestByteVocabulary = 259;

// n_tokens >= kSmallestByteVocabulary.
ByteVocabulary make_byte_vocabulary(int n_tokens);

}  // namespace sluice::text
