// Prompts of gaps to be filled in, token by token: a vocabulary of bytes, where token b is byte b.
// SPDX-License-Identifier: Apache-2.0
#include "text/fill_prompt.h"

#include <gtest/gtest.h>

#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

constexpr size_t kPlenty = 1000;

// Bytes, then what the texts name; a model has the first n of them.
struct Special {
  const char* text;
  std::optional<TokenId> SpecialIds::*role;
};
constexpr Special kSpecial[] = {
    {"(pre)", &SpecialIds::fim_prefix},    {"(suf)", &SpecialIds::fim_suffix},
    {"(mid)", &SpecialIds::fim_middle},    {"(rep)", &SpecialIds::fim_repo},
    {"(sep)", &SpecialIds::fim_separator}, {"(bos)", &SpecialIds::bos}};

Tokenizer tokenizer_with(size_t n_special) {
  TokenizerData data = byte_data();
  for (size_t i = 0; i < n_special; ++i) {
    data.ids.*kSpecial[i].role = add_token(data, kSpecial[i].text, TokenKind::control);
  }
  data.add_bos = n_special == std::size(kSpecial);
  return Tokenizer(std::move(data));
}

std::string shown(const Tokenizer& tokenizer, const FillPrompt& prompt) {
  return tokenizer.decode(prompt.tokens, /*render_special=*/true);
}

TEST(FillPrompt, IsPrefixSuffixAndMiddle) {
  const Tokenizer tokenizer = tokenizer_with(3);
  const FillInput input{.prefix = "ab", .suffix = "c", .begun = "d"};
  const FillPrompt prompt = make_fill_prompt(tokenizer, input, kPlenty);
  const Ids expected = {256, 'a', 'b', 257, 'c', 258, 'd'};
  EXPECT_EQ(prompt.tokens, expected);
  EXPECT_EQ(make_fill_prompt(tokenizer, {}, kPlenty).tokens, (Ids{256, 257, 258}));
}

TEST(FillPrompt, HasFilesInFrontInTheModelsFrame) {
  const FillInput input{.prefix = "P", .suffix = "S", .files = {{"a.c", "x"}, {"b.c", "y\n"}}};
  Tokenizer tokenizer = tokenizer_with(5);
  EXPECT_EQ(shown(tokenizer, make_fill_prompt(tokenizer, input, kPlenty)),
            "(rep)myproject\n(sep)a.c\nx\n(sep)b.c\ny\n(sep)filename\n(pre)P(suf)S(mid)");
  tokenizer = tokenizer_with(6);
  EXPECT_EQ(shown(tokenizer, make_fill_prompt(tokenizer, input, kPlenty)),
            "(bos)(rep)myproject\n(sep)a.c\nx\n(sep)b.c\ny\n(sep)filename\n(pre)P(suf)S(mid)");
  tokenizer = tokenizer_with(4);  // no separator: no frame
  EXPECT_EQ(shown(tokenizer, make_fill_prompt(tokenizer, input, kPlenty)),
            "a.c\nx\nb.c\ny\n(pre)P(suf)S(mid)");
}

TEST(FillPrompt, HasNoFrameWithoutFiles) {
  const Tokenizer tokenizer = tokenizer_with(6);
  EXPECT_EQ(shown(tokenizer, make_fill_prompt(tokenizer, {.prefix = "P"}, kPlenty)),
            "(bos)(pre)P(suf)(mid)");
}

TEST(FillPrompt, TakesControlTokensInTextsForText) {
  const Tokenizer tokenizer = tokenizer_with(5);
  const FillInput input{.prefix = "(mid)", .suffix = "(pre)", .files = {{"(sep)", "(rep)"}}};
  const FillPrompt prompt = make_fill_prompt(tokenizer, input, kPlenty);
  EXPECT_EQ(shown(tokenizer, prompt),
            "(rep)myproject\n(sep)(sep)\n(rep)\n(sep)filename\n(pre)(mid)(suf)(pre)(mid)");
  EXPECT_EQ(std::ranges::count_if(prompt.tokens, [](TokenId id) { return id >= 256; }), 6);
}

TEST(FillPrompt, LeavesOutTheFirstFilesAndNothingElse) {
  const Tokenizer tokenizer = tokenizer_with(5);
  const FillInput input{
      .prefix = "P", .suffix = "S", .files = {{"a", "1"}, {"b", "2"}, {"c", "3"}}};
  const std::string all =
      "(rep)myproject\n(sep)a\n1\n(sep)b\n2\n(sep)c\n3\n(sep)filename\n(pre)P(suf)S(mid)";
  const size_t n_all = make_fill_prompt(tokenizer, input, kPlenty).tokens.size();
  const size_t n_file = 5;  // (sep) a \n 1 \n
  const auto with = [&](size_t n_most) { return make_fill_prompt(tokenizer, input, n_most); };
  EXPECT_EQ(shown(tokenizer, with(n_all)), all);
  EXPECT_EQ(with(n_all).n_left_out, 0);
  EXPECT_EQ(with(n_all - 1).n_left_out, 1);
  EXPECT_EQ(with(n_all - n_file).n_left_out, 1);
  EXPECT_EQ(shown(tokenizer, with(n_all - n_file - 1)),
            "(rep)myproject\n(sep)c\n3\n(sep)filename\n(pre)P(suf)S(mid)");
  EXPECT_EQ(with(1).n_left_out, 3);
  EXPECT_EQ(shown(tokenizer, with(1)), "(pre)P(suf)S(mid)");
}

TEST(FillPrompt, SaysWhatAModelLacks) {
  EXPECT_EQ(missing_fill_tokens(tokenizer_with(3)), "");
  EXPECT_EQ(missing_fill_tokens(tokenizer_with(1)),
            "tokenizer.ggml.fim_suf_token_id, tokenizer.ggml.fim_mid_token_id");
  TokenizerData data = byte_data();
  for (const char* known : {"<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"}) {
    add_token(data, known, TokenKind::control);
  }
  EXPECT_EQ(missing_fill_tokens(Tokenizer(std::move(data))), "");
}

}  // namespace
}  // namespace sluice::text
