// The vocabulary of synthetic models, at its smallest sizes and with fillers.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_vocabulary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "text/tokenizer/byte_alphabet.h"

namespace sluice::text {
namespace {

int count(const ByteVocabulary& v, TokenKind kind) {
  return static_cast<int>(std::ranges::count(v.kinds, static_cast<int32_t>(kind)));
}

TEST(ByteVocabulary, HasTheWantedSizeAndUniqueTokensOfTheRightKinds) {
  struct Case {
    int n_tokens, n_normal, n_unused;
  };
  // 256 bytes; then one merged word, then two, then fillers.
  for (const Case& c :
       {Case{259, 256, 0}, Case{260, 257, 0}, Case{261, 258, 0}, Case{320, 258, 59}}) {
    const ByteVocabulary v = make_byte_vocabulary(c.n_tokens);
    ASSERT_EQ(std::ssize(v.tokens), c.n_tokens);
    ASSERT_EQ(std::ssize(v.kinds), c.n_tokens);
    EXPECT_EQ(std::set(v.tokens.begin(), v.tokens.end()).size(), v.tokens.size()) << c.n_tokens;
    EXPECT_EQ(count(v, TokenKind::normal), c.n_normal) << c.n_tokens;
    EXPECT_EQ(count(v, TokenKind::control), 3) << c.n_tokens;
    EXPECT_EQ(count(v, TokenKind::unused), c.n_unused) << c.n_tokens;
  }
}

TEST(ByteVocabulary, BeginsWithTheBytesAndThreeSpecialTokens) {
  for (const int n : {259, 320}) {
    const ByteVocabulary v = make_byte_vocabulary(n);
    for (size_t b = 0; b < 256; ++b) EXPECT_EQ(v.tokens[b], byte_alphabet()[b]) << "byte " << b;
    EXPECT_EQ(v.tokens[256], "<|endoftext|>");
    EXPECT_EQ(v.tokens[257], "<|im_start|>");
    EXPECT_EQ(v.tokens[258], "<|im_end|>");
    EXPECT_EQ(v.end_of_turn, 258);
    for (size_t i = 256; i < 259; ++i) EXPECT_EQ(v.kinds[i], 3) << "token " << i;
  }
}

// A merge names two tokens and, where there is room for it, the token they make.
TEST(ByteVocabulary, ItsMergesAreOfKnownTokens) {
  for (const int n : {259, 260, 261, 320}) {
    const ByteVocabulary v = make_byte_vocabulary(n);
    const std::set<std::string> known(v.tokens.begin(), v.tokens.end());
    ASSERT_EQ(v.merges.size(), 2u);
    for (size_t m = 0; m < v.merges.size(); ++m) {
      const size_t space = v.merges[m].find(' ', 1);
      ASSERT_NE(space, std::string::npos) << v.merges[m];
      const std::string left = v.merges[m].substr(0, space), right = v.merges[m].substr(space + 1);
      EXPECT_TRUE(known.contains(left)) << v.merges[m];
      EXPECT_TRUE(known.contains(right)) << v.merges[m];
      EXPECT_EQ(known.contains(left + right), n > 259 + static_cast<int>(m)) << v.merges[m] << n;
    }
  }
}

TEST(ByteVocabularyDeathTest, RefusesASizeWithoutRoomForTheBytes) {
  EXPECT_DEATH(make_byte_vocabulary(258), "CHECK");
}

}  // namespace
}  // namespace sluice::text
