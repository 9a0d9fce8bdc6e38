// libFuzzer entry for the tokenizers: any bytes can be encoded, with and without special tokens,
// and come back whole; a stream makes valid UTF-8 of them. The vocabularies are fixed, the first
// byte picks one.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "text/tokenizer/byte_alphabet.h"
#include "text/tokenizer/pre_tokenizer.h"
#include "text/tokenizer/tokenizer.h"
#include "text/utf8.h"
#include "text/utf8_stream.h"

namespace sluice::text {
namespace {

void add_token(TokenizerData& data, std::string text, TokenKind kind) {
  data.tokens.push_back(std::move(text));
  data.kinds.push_back(kind);
}

void add_special(TokenizerData& data) {
  add_token(data, "<|endoftext|>", TokenKind::control);
  add_token(data, "<|im_start|>", TokenKind::control);
  add_token(data, "<|im", TokenKind::user_defined);
  add_token(data, "==>", TokenKind::user_defined);
  add_token(data, "=>>>", TokenKind::user_defined);
  add_token(data, "  ", TokenKind::user_defined);
  data.scores.resize(data.tokens.size());
}

constexpr const char* kWords[] = {" the",
                                  "123",
                                  "\r\n",
                                  "    ",
                                  "e\xcc\x81",
                                  "'ll",
                                  "aaaa",
                                  "ab",
                                  "bc",
                                  "abc",
                                  "\xe4\xb8\xad\xe6\x96\x87",
                                  "A\xc3\x84",
                                  "==",
                                  "\xf0\x9f\x98\x80",
                                  "\xff\xfe"};

Tokenizer byte_level(std::string_view pre) {
  TokenizerData data;
  data.model = "gpt2";
  data.pre = pre;
  for (const std::string& symbol : byte_alphabet()) add_token(data, symbol, TokenKind::normal);
  for (const char* word : kWords) {
    std::string left;
    for (const char c : std::string_view(word)) {
      const std::string& right = byte_alphabet()[static_cast<uint8_t>(c)];
      if (!left.empty()) {
        data.merges.push_back(left + " " + right);
        if (std::ranges::find(data.tokens, left + right) == data.tokens.end()) {
          add_token(data, left + right, TokenKind::normal);
        }
      }
      left += right;
    }
  }
  add_special(data);
  data.ids.bos = 256;
  return Tokenizer(std::move(data));
}

Tokenizer sentence_piece(bool add_space_prefix) {
  TokenizerData data;
  data.model = "llama";
  add_token(data, "<unk>", TokenKind::unknown);
  add_token(data, "<s>", TokenKind::control);
  add_token(data, "</s>", TokenKind::control);
  for (unsigned byte = 0; byte < 256; ++byte) {
    constexpr char kHex[] = "0123456789ABCDEF";
    add_token(data, {'<', '0', 'x', kHex[byte >> 4], kHex[byte & 15], '>'}, TokenKind::byte);
  }
  for (const char* text : {"a", "b", "ab", "\xe2\x96\x81",
                           "\xe2\x96\x81"
                           "a",
                           "e", "\xcc\x81", "he", "\xe2\x96\x81\xe2\x96\x81", "t", "h", "s>", "</",
                           "\xe4\xb8\xad\xe6\x96\x87", "12", "aa", "aaaa"}) {
    add_token(data, text, TokenKind::normal);
    data.scores.resize(data.tokens.size(), -static_cast<float>(data.tokens.size() / 3));
  }
  add_special(data);
  data.add_space_prefix = add_space_prefix;
  return Tokenizer(std::move(data));
}

const std::vector<Tokenizer>& tokenizers() {
  static const std::vector<Tokenizer> kAll = [] {
    std::vector<Tokenizer> all;
    for (const std::string_view name : PreTokenizer::names()) all.push_back(byte_level(name));
    all.push_back(sentence_piece(true));
    all.push_back(sentence_piece(false));
    return all;
  }();
  return kAll;
}

void check_round_trip(const Tokenizer& tokenizer, std::string_view text, bool is_llama) {
  const auto plain = tokenizer.encode(text, {.add_special = true, .parse_special = false});
  const auto parsed = tokenizer.encode(text, {.add_special = false, .parse_special = true});
  for (const TokenId id : plain) CHECK(id >= 0 && id < tokenizer.n_tokens());
  if (!is_llama) {
    CHECK(tokenizer.decode(parsed, true) == text);
    const size_t n_bos = tokenizer.adds_bos() ? 1 : 0;
    CHECK(tokenizer.decode(std::span(plain).subspan(n_bos), true) == text);
    return;
  }
  // A space comes in front of what follows a special token, and stays there; U+2581 becomes one.
  const bool has_special = std::ranges::any_of(
      plain, [&](TokenId id) { return tokenizer.token_kind(id) == TokenKind::user_defined; });
  if (!has_special && text.find(kSpmSpace) == std::string_view::npos) {
    CHECK(tokenizer.decode(plain) == text);
  }
}

void check_stream(std::string_view bytes) {
  Utf8Stream whole;
  std::string expected = whole.push(bytes);
  expected += whole.flush();
  CHECK(valid_utf8_length(expected) == expected.size());
  Utf8Stream cut;
  std::string got;
  for (size_t i = 0; i < bytes.size(); ++i) got += cut.push(bytes.substr(i, 1));
  CHECK(got + cut.flush() == expected);
}

}  // namespace
}  // namespace sluice::text

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice::text;
  if (size == 0) return 0;
  const size_t which = data[0] % tokenizers().size();
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  check_round_trip(tokenizers()[which], text, which + 2 >= tokenizers().size());
  check_stream(text);
  return 0;
}
