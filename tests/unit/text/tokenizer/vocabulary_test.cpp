// The vocabulary: tokens by id and text, and every check that data must pass.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/vocabulary.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "base/error.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

TokenizerData three_tokens() {
  TokenizerData data;
  data.origin = "m.gguf";
  data.tokens = {"a", "b", "c"};
  return data;
}

std::string refusal(const std::function<void(TokenizerData&)>& spoil) {
  TokenizerData data = three_tokens();
  spoil(data);
  try {
    const Vocabulary vocabulary(data);
    return "none";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::bad_file);
    return error.what();
  }
}

TEST(Vocabulary, FindsTokensByTextAndTheLastOfEqualOnes) {
  TokenizerData data = three_tokens();
  data.tokens.emplace_back("a");
  const Vocabulary vocabulary(std::move(data));
  EXPECT_EQ(vocabulary.n_tokens(), 4);
  EXPECT_EQ(vocabulary.text(2), "c");
  EXPECT_EQ(vocabulary.find("a"), 3);
  EXPECT_EQ(vocabulary.find("b"), 1);
  EXPECT_EQ(vocabulary.find("d"), std::nullopt);
  EXPECT_EQ(vocabulary.find(""), std::nullopt);
}

TEST(Vocabulary, WithoutTypesAllTokensAreNormal) {
  Vocabulary vocabulary(three_tokens());
  EXPECT_EQ(vocabulary.kind(1), TokenKind::normal);
  vocabulary.set_kind(1, TokenKind::control);
  EXPECT_EQ(vocabulary.kind(1), TokenKind::control);
}

TEST(Vocabulary, PlainTextFindsNormalAndUserDefinedTokensAlone) {
  TokenizerData data;
  for (const auto& [text, kind] :
       {std::pair("n", TokenKind::normal), std::pair("u", TokenKind::unknown),
        std::pair("c", TokenKind::control), std::pair("d", TokenKind::user_defined),
        std::pair("x", TokenKind::unused), std::pair("b", TokenKind::byte)}) {
    add_token(data, text, kind);
  }
  const Vocabulary vocabulary(std::move(data));
  EXPECT_EQ(vocabulary.find_plain("n"), 0);
  EXPECT_EQ(vocabulary.find_plain("d"), 3);
  for (const char* text : {"u", "c", "x", "b", "?"}) {
    EXPECT_EQ(vocabulary.find_plain(text), std::nullopt) << text;
  }
}

TEST(Vocabulary, StillFindsItsTokensAfterAMove) {
  Vocabulary first(three_tokens());
  const Vocabulary second = std::move(first);
  EXPECT_EQ(second.find("c"), 2);
}

TEST(Vocabulary, RefusesListsOfOtherLengths) {
  EXPECT_EQ(refusal([](TokenizerData& d) { d.tokens.clear(); }),
            "m.gguf: a vocabulary of 0 tokens; expected 1 to 536870911");
  EXPECT_EQ(refusal([](TokenizerData& d) { d.kinds.resize(2, TokenKind::normal); }),
            "m.gguf: 2 token types for 3 tokens; expected one for each");
  EXPECT_EQ(refusal([](TokenizerData& d) { d.scores.resize(4); }),
            "m.gguf: 4 scores for 3 tokens; expected one for each");
}

TEST(Vocabulary, RefusesIdsWithoutAToken) {
  const std::pair<std::optional<TokenId> SpecialIds::*, const char*> ids[] = {
      {&SpecialIds::bos, "bos"},
      {&SpecialIds::eos, "eos"},
      {&SpecialIds::eot, "eot"},
      {&SpecialIds::eom, "eom"},
      {&SpecialIds::unknown, "unknown"},
      {&SpecialIds::padding, "padding"},
      {&SpecialIds::fim_prefix, "fim prefix"},
      {&SpecialIds::fim_suffix, "fim suffix"},
      {&SpecialIds::fim_middle, "fim middle"},
      {&SpecialIds::fim_pad, "fim pad"},
      {&SpecialIds::fim_repo, "fim repo"},
      {&SpecialIds::fim_separator, "fim separator"},
  };
  for (const auto& [id, name] : ids) {
    for (const TokenId bad : {3, -1}) {
      EXPECT_EQ(refusal([&, id = id](TokenizerData& d) { d.ids.*id = bad; }),
                cat("m.gguf: the ", name, " token is ", bad,
                    "; expected an id below the 3 tokens of the vocabulary"));
    }
    EXPECT_EQ(refusal([id = id](TokenizerData& d) { d.ids.*id = 2; }), "none") << name;
  }
  EXPECT_EQ(refusal([](TokenizerData& d) {
              d.suppress_tokens = {0, 3};
            }),
            "m.gguf: the suppressed token is 3; expected an id below the 3 tokens of the "
            "vocabulary");
}

}  // namespace
}  // namespace sluice::text
