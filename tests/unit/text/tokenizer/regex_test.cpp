// SplitRegex: matches and what stands between them, with Unicode's idea of letters and spaces.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice::text {
namespace {

using Pieces = std::vector<std::string_view>;

Pieces split(const char* pattern, std::string_view text) {
  SplitScratch scratch;
  Pieces pieces;
  SplitRegex(pattern).split(text, scratch, pieces);
  return pieces;
}

TEST(SplitRegex, GivesMatchesAndTheStretchesBetweenThem) {
  EXPECT_EQ(split("b+", "abbcb"), (Pieces{"a", "bb", "c", "b"}));
  EXPECT_EQ(split("b+", "ac"), (Pieces{"ac"}));
  EXPECT_EQ(split("b+", "bcc"), (Pieces{"b", "cc"}));
  EXPECT_EQ(split("b+", ""), Pieces{});
}

TEST(SplitRegex, AppendsToWhatIsThere) {
  SplitScratch scratch;
  Pieces pieces = {"x"};
  const SplitRegex regex("b");
  regex.split("ab", scratch, pieces);
  regex.split("b", scratch, pieces);
  EXPECT_EQ(pieces, (Pieces{"x", "a", "b", "b"}));
}

TEST(SplitRegex, KnowsUnicodesLetters) {
  EXPECT_EQ(split(R"(\p{L}+)", "1\xc3\xa4\xd0\xb6\xe4\xb8\xad 2"),
            (Pieces{"1", "\xc3\xa4\xd0\xb6\xe4\xb8\xad", " 2"}));
}

// U+180E was a space in old versions of Unicode, and is one for PCRE2.
TEST(SplitRegex, SpacesAreThoseOfUnicode) {
  for (const char* space : {" ", "\t", "\v", "\f", "\xc2\x85", "\xc2\xa0", "\xe1\x9a\x80",
                            "\xe2\x80\xa8", "\xe2\x80\xaf", "\xe2\x81\x9f", "\xe3\x80\x80"}) {
    EXPECT_EQ(split(R"(\s+)", std::string("a") + space + "b").size(), 3u) << space;
    EXPECT_EQ(split(R"([^\s]+)", std::string("a") + space + "b").size(), 3u) << space;
    EXPECT_EQ(split(R"(\S)", space), (Pieces{space}));
  }
  for (const char* other : {"\xe1\xa0\x8e", "\xe2\x80\x8b", "\xef\xbb\xbf", "\x1c"}) {
    EXPECT_EQ(split(R"(\s+)", std::string("a") + other + "b").size(), 1u) << other;
  }
}

TEST(SplitRegex, AnEscapedBackslashIsNoSpace) {
  EXPECT_EQ(split(R"(\\s)", R"(a\sb c)"), (Pieces{"a", R"(\s)", "b c"}));
}

// The dollar must not match before a last line end, and a lookahead sees the text's end.
TEST(SplitRegex, TheEndIsTheEndOfTheTextGiven) {
  EXPECT_EQ(split("a$", "a\n"), (Pieces{"a\n"}));
  const std::string text = "a  b";
  EXPECT_EQ(split(R"(\s+(?!\S))", std::string_view(text).substr(0, 3)), (Pieces{"a", "  "}));
  EXPECT_EQ(split(R"(\s+(?!\S))", text), (Pieces{"a", " ", " b"}));
}

TEST(SplitRegexDeathTest, AMistakeInAPatternStopsTheProgram) {
  EXPECT_DEATH(SplitRegex("["), "CHECK");
  EXPECT_DEATH(split("b*", "abc"), "CHECK");  // matches nothing, and would never end
}

}  // namespace
}  // namespace sluice::text
