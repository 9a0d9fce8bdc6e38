// Small vocabularies for the tests of tokenizers, built from words, and random texts of many kinds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "text/tokenizer/bpe.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/tokenizer.h"
#include "text/tokenizer/tokenizer_data.h"

namespace sluice::text {

using Ids = std::vector<TokenId>;

inline constexpr EncodeOptions kPlain = {.add_special = false, .parse_special = false};
inline constexpr EncodeOptions kParsed = {.add_special = false, .parse_special = true};
inline constexpr EncodeOptions kWhole = {.add_special = true, .parse_special = true};

inline TokenId add_token(TokenizerData& data, std::string text,
                         TokenKind kind = TokenKind::normal) {
  data.tokens.push_back(std::move(text));
  data.kinds.push_back(kind);
  return static_cast<TokenId>(data.tokens.size() - 1);
}

// Token b stands for byte b; no merges yet.
inline TokenizerData byte_data(std::string pre = "gpt-2") {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = std::move(pre);
  for (const std::string& symbol : byte_alphabet()) add_token(data, symbol);
  return data;
}

inline std::string in_alphabet(std::string_view bytes) {
  std::string out;
  append_in_byte_alphabet(bytes, out);
  return out;
}

// The merge of two words given as raw bytes, and its result as a token where it is none yet.
inline void add_merge(TokenizerData& data, std::string_view left, std::string_view right) {
  data.merges.push_back(in_alphabet(left) + " " + in_alphabet(right));
  const std::string result = in_alphabet(left) + in_alphabet(right);
  if (std::ranges::find(data.tokens, result) == data.tokens.end()) add_token(data, result);
}

// Merges that make the word of its bytes, from the left.
inline void add_word(TokenizerData& data, std::string_view word) {
  for (size_t n = 1; n < word.size(); ++n) add_merge(data, word.substr(0, n), word.substr(n, 1));
}

// Bytes, words that reach across the places where pre-tokenizers cut, and special tokens.
inline TokenizerData word_data(std::string pre = "gpt-2") {
  TokenizerData data = byte_data(std::move(pre));
  for (const char* word : {" the",
                           "the",
                           "ing",
                           "123",
                           "12",
                           "\r\n",
                           "\n\n",
                           "    ",
                           "\t\t",
                           " (",
                           ");",
                           "e\xcc\x81",
                           "\xe4\xb8\xad\xe6\x96\x87",
                           "\xd0\xbf\xd1\x80\xd0\xb8",
                           "'s",
                           "'ll",
                           "==",
                           "\xf0\x9f\x98\x80",
                           "d'",
                           "3.1",
                           " 1",
                           "\xc2\xa0",
                           "A\xc3\x84"}) {
    add_word(data, word);
  }
  add_token(data, "<|endoftext|>", TokenKind::control);
  add_token(data, "<|im_start|>", TokenKind::control);
  add_token(data, "<tool_call>", TokenKind::user_defined);
  return data;
}

// <unk>, <s>, </s>, the 256 bytes, then the words with falling scores; then each of their
// characters.
inline TokenizerData spm_data(std::initializer_list<const char*> words) {
  TokenizerData data;
  data.model = "llama";
  add_token(data, "<unk>", TokenKind::unknown);
  add_token(data, "<s>", TokenKind::control);
  add_token(data, "</s>", TokenKind::control);
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    add_token(data, {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'}, TokenKind::byte);
  }
  data.scores.assign(data.tokens.size(), 0.0f);
  float score = 0.0f;
  for (const char* word : words) {
    add_token(data, word);
    data.scores.push_back(score -= 1.0f);
  }
  return data;
}

// What encoders must be able to bear, from the same seed always the same.
class RandomTexts {
 public:
  explicit RandomTexts(uint64_t seed) : random_(seed) {}

  std::string next() {
    std::string text;
    const int n_parts = number(1, 6);
    for (int i = 0; i < n_parts; ++i) text += part();
    return text;
  }

  int number(int least, int most) {
    return std::uniform_int_distribution<int>(least, most)(random_);
  }

  static std::string utf8(unsigned code) {
    const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
    if (code < 0x80) return {static_cast<char>(code)};
    if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
    if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
    return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
  }

 private:
  std::string part() {
    switch (number(0, 4)) {
      case 0:
        return bytes();
      case 1:
        return script();
      case 2:
        return spaces();
      case 3:
        return code();
      default:
        return special();
    }
  }

  std::string bytes() {
    std::string text;
    for (int n = number(0, 12); n > 0; --n) text += static_cast<char>(number(0, 255));
    return text;
  }

  std::string script() {
    // Latin, Greek, Cyrillic, Armenian, Hebrew, Arabic, Devanagari, Thai, Georgian, Hangul, Kana,
    // Han; then marks, digits of many scripts, symbols, emoji and the astral planes.
    constexpr std::pair<int, int> kRanges[] = {
        {0x20, 0x24f},      {0x370, 0x3ff},     {0x400, 0x52f},     {0x531, 0x58a},
        {0x591, 0x5f4},     {0x600, 0x6ff},     {0x900, 0x97f},     {0xe01, 0xe5b},
        {0x10a0, 0x10ff},   {0xac00, 0xd7a3},   {0x3041, 0x30ff},   {0x4e00, 0x9fa5},
        {0x300, 0x36f},     {0x660, 0x669},     {0x2000, 0x206f},   {0x2460, 0x2570},
        {0x1f300, 0x1f64f}, {0x1f1e6, 0x1f1ff}, {0x10400, 0x1044f}, {0x20000, 0x2a6df},
    };
    const auto& [first, last] =
        kRanges[static_cast<size_t>(number(0, static_cast<int>(std::size(kRanges)) - 1))];
    std::string text;
    for (int n = number(1, 12); n > 0; --n)
      text += utf8(static_cast<unsigned>(number(first, last)));
    return text;
  }

  std::string spaces() {
    constexpr const char* kSpaces[] = {" ",  " ",    "  ",           "\t",           "\n",
                                       "\r", "\r\n", "\xc2\xa0",     "\xe3\x80\x80", "\xc2\x85",
                                       "\v", "\f",   "\xe2\x80\xa8", "\xe1\xa0\x8e"};
    std::string text;
    for (int n = number(1, 8); n > 0; --n) {
      text += kSpaces[static_cast<size_t>(number(0, static_cast<int>(std::size(kSpaces)) - 1))];
    }
    return text;
  }

  std::string code() {
    constexpr const char* kCode[] = {"for (int i = 0; i < 10; ++i) {\n",
                                     "    return x->y[3];\r\n",
                                     "// it's 3.14159\n",
                                     "def f(self):\n\tpass\n",
                                     "{\"key\": [1, 22, 333, 4444]}",
                                     "don't I'LL WE'VE",
                                     "http://a.b/c?d=e&f#g",
                                     "snake_case camelCase XML"};
    return kCode[static_cast<size_t>(number(0, static_cast<int>(std::size(kCode)) - 1))];
  }

  std::string special() {
    constexpr const char* kSpecial[] = {"<|endoftext|>", "<|im_start|>", "<tool_call>", "<|im_",
                                        "</s>",          "<s>",          "<0x0A>",      "<"};
    return kSpecial[static_cast<size_t>(number(0, static_cast<int>(std::size(kSpecial)) - 1))];
  }

  std::mt19937_64 random_;
};

}  // namespace sluice::text
