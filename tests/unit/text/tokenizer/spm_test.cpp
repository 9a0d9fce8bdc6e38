// SentencePiece-style BPE: scores decide, characters without a token fall back to bytes.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/spm.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "base/error.h"
#include "support/sanitizers.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

Ids spm_encode(const TokenizerData& data, std::string_view text) {
  MergeSequence scratch;
  Ids ids;
  Spm(Vocabulary(data)).encode(text, scratch, ids);
  return ids;
}

using Words = std::vector<std::string>;

Words spm_words(const TokenizerData& data, std::string_view text) {
  Words out;
  for (const TokenId id : spm_encode(data, text)) {
    out.push_back(data.tokens[static_cast<size_t>(id)]);
  }
  return out;
}

TEST(Spm, TheHighestScoreMergesFirst) {
  EXPECT_EQ(spm_words(spm_data({"bc", "ab", "a", "b", "c"}), "abc"), (Words{"a", "bc"}));
  EXPECT_EQ(spm_words(spm_data({"ab", "bc", "a", "b", "c"}), "abc"), (Words{"ab", "c"}));
}

TEST(Spm, OfEqualScoresTheLeftmostMergesFirst) {
  TokenizerData data = spm_data({"bc", "ab", "cd", "a", "b", "c", "d"});
  std::fill(data.scores.begin() + 259, data.scores.end(), -1.0f);
  EXPECT_EQ(spm_words(data, "abcd"), (Words{"ab", "cd"}));
  EXPECT_EQ(spm_words(data, "xbcd"), (Words{"<0x78>", "bc", "d"}));
}

// A token may come about in several ways, also of parts that no list of merges names.
TEST(Spm, AnyTwoPartsThatMakeATokenMerge) {
  const TokenizerData data = spm_data({"bcd", "ab", "cd", "abcd", "a", "b", "c", "d"});
  EXPECT_EQ(spm_words(data, "abcd"), (Words{"abcd"}));  // ab, then cd, then both
}

TEST(Spm, ACharacterMayMergeWithoutBeingATokenItself) {
  const TokenizerData data = spm_data({"\xe4\xb8\xad\xe6\x96\x87", "a"});
  EXPECT_EQ(spm_words(data, "\xe4\xb8\xad\xe6\x96\x87"), (Words{"\xe4\xb8\xad\xe6\x96\x87"}));
  EXPECT_EQ(spm_words(data,
                      "\xe4\xb8\xad"
                      "a"),
            (Words{"<0xE4>", "<0xB8>", "<0xAD>", "a"}));
}

TEST(Spm, WhatHasNoTokenBecomesBytes) {
  const TokenizerData data = spm_data({"a"});
  EXPECT_EQ(spm_words(data, "a\xc3\xa4\n"), (Words{"a", "<0xC3>", "<0xA4>", "<0x0A>"}));
  EXPECT_EQ(spm_words(data,
                      "\xff"
                      "a\xe4\xb8"),
            (Words{"<0xFF>", "a", "<0xE4>", "<0xB8>"}));
  EXPECT_EQ(spm_encode(data, ""), Ids{});
}

TEST(Spm, AByteWithoutATokenIsUnknownOrLeftOut) {
  TokenizerData data = spm_data({"a"});
  data.tokens[3 + 'x'] = "[removed]";
  EXPECT_EQ(spm_words(data, "axa"), (Words{"a", "a"}));
  data.ids.unknown = 0;
  EXPECT_EQ(spm_words(data, "axa"), (Words{"a", "<unk>", "a"}));
}

// SentencePiece keeps these out of its text search as well; a user could end an answer otherwise.
TEST(Spm, MergesNeverMakeASpecialToken) {
  EXPECT_EQ(spm_words(spm_data({"s>", "</", "<s", "<", "/", "s", ">"}), "</s>"),
            (Words{"</", "s>"}));
  for (const TokenKind kind :
       {TokenKind::control, TokenKind::unknown, TokenKind::unused, TokenKind::byte}) {
    TokenizerData data = spm_data({"a", "b", "ab"});
    data.kinds.back() = kind;
    EXPECT_EQ(spm_words(data, "ab"), (Words{"a", "b"})) << static_cast<int>(kind);
  }
}

TEST(Spm, UserDefinedTokensMergeLikeNormalOnes) {
  TokenizerData data = spm_data({"a", "b", "ab"});
  data.kinds.back() = TokenKind::user_defined;
  EXPECT_EQ(spm_words(data, "ab"), (Words{"ab"}));
}

TEST(Spm, VeryLongTokensAreNotMadeByMerging) {
  const std::string limit(1024, 'a');
  const std::string beyond(1025, 'b');
  TokenizerData data = spm_data({"a", "b", limit.c_str(), beyond.c_str()});
  for (size_t n = 2; n < 1025; n *= 2) {
    for (const char c : {'a', 'b'}) {
      add_token(data, std::string(n, c));
      data.scores.push_back(-static_cast<float>(n));
    }
  }
  EXPECT_EQ(spm_words(data, limit), (Words{limit}));
  EXPECT_EQ(spm_words(data, beyond), (Words{std::string(1024, 'b'), "b"}));
}

TEST(Spm, RefusesAVocabularyWithoutScoresOrWithOneThatIsNoNumber) {
  TokenizerData data = spm_data({"a"});
  data.origin = "m.gguf";
  const auto refusal = [&] {
    try {
      const Spm spm{Vocabulary(data)};
      return std::string("none");
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::bad_file);
      return std::string(error.what());
    }
  };
  data.scores[7] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(), "m.gguf: the score of token 7 is not a number");
  data.scores.clear();
  EXPECT_EQ(refusal(),
            "m.gguf: a vocabulary of type 'llama' without scores; expected one for each token");
}

TEST(Spm, InfiniteScoresOnlyOrder) {
  TokenizerData data = spm_data({"bc", "ab", "a", "b", "c"});
  data.scores[260] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(spm_words(data, "abc"), (Words{"ab", "c"}));
}

TEST(Spm, ByteTokensAreSixCharactersWithTwoHexDigits) {
  EXPECT_EQ(byte_of_token("<0x0A>"), uint8_t{10});
  EXPECT_EQ(byte_of_token("<0xff>"), uint8_t{255});
  for (const char* text :
       {"", "<0x0A", "<0x0A>>", "<0X0A>", "<0x0G>", "<0x-1>", "<0x 1>", "x0x0A>"}) {
    EXPECT_EQ(byte_of_token(text), std::nullopt) << text;
  }
}

Words encode_plainly(const TokenizerData& data, const std::string& text) {
  Words parts;
  for (const char c : text) parts.emplace_back(1, c);
  const auto score = [&](const std::string& word) {
    const auto found = std::ranges::find(data.tokens, word);
    if (found == data.tokens.end()) return -std::numeric_limits<float>::infinity();
    return data.scores[static_cast<size_t>(found - data.tokens.begin())];
  };
  for (;;) {
    size_t best = 0;
    float best_score = -std::numeric_limits<float>::infinity();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const float s = score(parts[i] + parts[i + 1]);
      if (s > best_score) std::tie(best, best_score) = std::pair(i, s);
    }
    if (best_score == -std::numeric_limits<float>::infinity()) return parts;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Spm, MergesAsTheDefinitionDoes) {
  std::mt19937 random(9);
  const auto word = [&](size_t n) {
    std::string text;
    while (text.size() < n) text += static_cast<char>('a' + random() % 3);
    return text;
  };
  const int n_vocabularies = sluice::test::kSanitized ? 40 : 200;  // all without sanitizers
  for (int i = 0; i < n_vocabularies; ++i) {
    TokenizerData data = spm_data({"a", "b", "c"});
    for (int n = 0; n < 25; ++n) {
      const std::string text = word(2 + random() % 4);
      if (std::ranges::find(data.tokens, text) != data.tokens.end()) continue;
      add_token(data, text);
      data.scores.push_back(-static_cast<float>(random() % 8));
    }
    for (int n = 0; n < 5; ++n) {
      const std::string text = word(random() % 60);
      ASSERT_EQ(spm_words(data, text), encode_plainly(data, text)) << "case " << i << ": " << text;
    }
  }
}

}  // namespace
}  // namespace sluice::text
