// Byte-level BPE: which merges happen and in which order, and that no byte is lost.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bpe.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <string>
#include <tuple>

#include "base/error.h"
#include "unit/text/tokenizer/samples.h"

namespace sluice::text {
namespace {

Ids encode(const TokenizerData& data, std::string_view piece) {
  MergeSequence scratch;
  Ids ids;
  Bpe(Vocabulary(data)).encode(piece, scratch, ids);
  return ids;
}

// The tokens' texts, for readable expectations.
std::vector<std::string> words(const TokenizerData& data, std::string_view piece) {
  std::vector<std::string> out;
  for (const TokenId id : encode(data, piece)) {
    out.push_back(from_byte_alphabet(data.tokens[static_cast<size_t>(id)]));
  }
  return out;
}

using Words = std::vector<std::string>;

TEST(Bpe, WithoutMergesAPieceIsItsBytes) {
  const TokenizerData data = byte_data();
  std::string all;
  Ids expected;
  for (int b = 0; b < 256; ++b) {
    all += static_cast<char>(b);
    expected.push_back(b);
  }
  EXPECT_EQ(encode(data, all), expected);
  EXPECT_EQ(encode(data, ""), Ids{});
}

TEST(Bpe, TheEarlierMergeHappensFirst) {
  TokenizerData data = byte_data();
  add_merge(data, "b", "c");
  add_merge(data, "a", "b");
  EXPECT_EQ(words(data, "abc"), (Words{"a", "bc"}));
  EXPECT_EQ(words(data, "abab"), (Words{"ab", "ab"}));
}

TEST(Bpe, OfEqualPairsTheLeftmostMergesFirst) {
  TokenizerData data = byte_data();
  add_merge(data, "a", "a");
  EXPECT_EQ(words(data, "aaa"), (Words{"aa", "a"}));
  EXPECT_EQ(words(data, "aaaaa"), (Words{"aa", "aa", "a"}));
  add_merge(data, "aa", "a");
  EXPECT_EQ(words(data, "aaa"), (Words{"aaa"}));
  EXPECT_EQ(words(data, "aaaaa"), (Words{"aa", "aaa"}));
}

TEST(Bpe, OfAMergeThatStandsTwiceTheFirstCounts) {
  TokenizerData data = byte_data();
  add_merge(data, "a", "b");
  add_merge(data, "b", "c");
  add_merge(data, "a", "b");
  EXPECT_EQ(words(data, "abc"), (Words{"ab", "c"}));
}

TEST(Bpe, MergesMayPassThroughWordsThatAreNoTokens) {
  TokenizerData data = byte_data();
  data.merges = {"a b", "ab c"};
  add_token(data, "abc");
  EXPECT_EQ(words(data, "abcab"), (Words{"abc", "a", "b"}));
}

// A file may list a merge and lack the token: its bytes stand in.
TEST(Bpe, AResultThatIsNoTokenBecomesItsBytes) {
  TokenizerData data = byte_data();
  data.merges = {in_alphabet(" ") + " t", in_alphabet("\xe4") + " " + in_alphabet("\xb8")};
  EXPECT_EQ(encode(data, " t"), (Ids{' ', 't'}));
  EXPECT_EQ(encode(data, "\xe4\xb8"), (Ids{0xe4, 0xb8}));
}

TEST(Bpe, AByteWithoutATokenIsUnknownOrLeftOut) {
  TokenizerData data = byte_data();
  data.tokens['x'] = "[removed]";
  EXPECT_EQ(encode(data, "axb"), (Ids{'a', 'b'}));
  data.ids.unknown = add_token(data, "<unk>", TokenKind::unknown);
  EXPECT_EQ(encode(data, "axb"), (Ids{'a', *data.ids.unknown, 'b'}));
}

// No wording of a text may turn into a control token.
TEST(Bpe, MergesNeverMakeASpecialToken) {
  for (const TokenKind kind : {TokenKind::control, TokenKind::unknown, TokenKind::unused}) {
    TokenizerData data = byte_data();
    add_token(data, "<s>", kind);
    data.merges = {"< s", "<s >"};
    EXPECT_EQ(encode(data, "<s>"), (Ids{'<', 's', '>'})) << static_cast<int>(kind);
  }
}

TEST(Bpe, ASpaceInFrontBelongsToTheLeftWordOfAMerge) {
  TokenizerData data = byte_data();
  data.merges = {"  b"};  // " " and "b"; not a word of the byte alphabet, so it never happens
  EXPECT_EQ(encode(data, " b"), (Ids{' ', 'b'}));
}

TEST(Bpe, RefusesAMergeThatIsNotTwoWords) {
  for (const char* merge : {"ab", "", "a ", " "}) {
    TokenizerData data = byte_data();
    data.origin = "m.gguf";
    data.merges = {"a b", merge};
    try {
      const Bpe bpe{Vocabulary(data)};
      FAIL() << "expected an Error for '" << merge << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::bad_file);
      EXPECT_STREQ(error.what(), "m.gguf: merge 1 of 2 is not two words with a space between");
    }
  }
}

// Merges the best pair of all, leftmost first, until there is none.
Ids encode_plainly(const TokenizerData& data, std::string_view piece) {
  const Vocabulary vocabulary(data);
  Words parts;
  for (const char c : piece) parts.push_back(in_alphabet({&c, 1}));
  for (;;) {
    size_t best = 0;
    size_t rank = data.merges.size();
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const std::string merge = parts[i] + " " + parts[i + 1];
      const auto found =
          static_cast<size_t>(std::ranges::find(data.merges, merge) - data.merges.begin());
      if (found < rank) std::tie(best, rank) = std::pair(i, found);
    }
    if (rank == data.merges.size()) break;
    parts[best] += parts[best + 1];
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  Ids ids;
  for (const std::string& part : parts) ids.push_back(*vocabulary.find(part));
  return ids;
}

TEST(Bpe, MergesAsTheDefinitionDoes) {
  std::mt19937 random(5);
  for (int i = 0; i < 200; ++i) {
    TokenizerData data = byte_data();
    Words known = {"a", "b", "c"};
    for (int n = 0; n < 12; ++n) {
      const std::string left = known[random() % known.size()];
      const std::string right = known[random() % known.size()];
      add_merge(data, left, right);
      known.push_back(left + right);
    }
    for (int n = 0; n < 5; ++n) {
      std::string text;
      for (size_t length = random() % 60; text.size() < length;) {
        text += static_cast<char>('a' + random() % 3);
      }
      ASSERT_EQ(encode(data, text), encode_plainly(data, text)) << "case " << i << ": " << text;
    }
  }
}

TEST(MergeTable, KeepsEveryPairWhileItGrows) {
  MergeTable table;
  EXPECT_EQ(table.find(0, 0).rank, MergeTable::kNoRank);
  for (Symbol i = 0; i < 20000; ++i) table.add(i, i * 7, {i, i + 1});
  table.add(5, 35, {1, 1});  // is there already
  for (Symbol i = 0; i < 20000; ++i) {
    ASSERT_EQ(table.find(i, i * 7).rank, i);
    ASSERT_EQ(table.find(i, i * 7).result, i + 1);
    ASSERT_EQ(table.find(i, i * 7 + 1).rank, MergeTable::kNoRank) << i;
  }
}

TEST(ByteAlphabetWords, GoThereAndBack) {
  std::string all;
  for (int b = 0; b < 256; ++b) all += static_cast<char>(b);
  EXPECT_EQ(from_byte_alphabet(in_alphabet(all)), all);
  EXPECT_EQ(from_byte_alphabet("\xe4\xb8\xad!"), "\xe4\xb8\xad!");  // stands for no byte
  EXPECT_EQ(from_byte_alphabet("\xc4\xa0t"), " t");
}

}  // namespace
}  // namespace sluice::text
