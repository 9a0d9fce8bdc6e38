// Special tokens in text: found longest first, as cutting them out one after another would find
// them.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <random>
#include <string>

#include "text/tokenizer/special_tokens.h"

namespace sluice::text {

bool operator==(const Fragment& a, const Fragment& b) {
  return a.token == b.token && a.text == b.text;
}

std::ostream& operator<<(std::ostream& to, const Fragment& f) {
  return to << f.token << ":'" << f.text << "'";
}

namespace {

using Fragments = std::vector<Fragment>;
constexpr TokenId kNoToken = Fragment::kPlain;

SpecialTokens of(std::initializer_list<std::pair<const char*, TokenId>> texts) {
  SpecialTokens tokens;
  for (const auto& [text, id] : texts) tokens.add(text, id);
  return tokens;
}

// What the search must find, in the plain way: one token after another, longest first, each
// wherever it stands in what is still text; of equal lengths, as all lengths here differ, there are
// none.
Fragments cut_plainly(std::vector<std::pair<std::string, TokenId>> tokens, std::string_view text) {
  std::ranges::sort(tokens,
                    [](const auto& a, const auto& b) { return a.first.size() > b.first.size(); });
  Fragments fragments = {{kNoToken, text}};
  for (const auto& [word, id] : tokens) {
    Fragments next;
    for (const Fragment& f : fragments) {
      std::string_view rest = f.text;
      while (f.token == kNoToken) {
        const size_t found = rest.find(word);
        if (found == std::string_view::npos) break;
        next.push_back({kNoToken, rest.substr(0, found)});
        next.push_back({id, rest.substr(found, word.size())});
        rest.remove_prefix(found + word.size());
      }
      next.push_back({f.token, rest});
    }
    std::erase_if(next, [](const Fragment& f) { return f.text.empty(); });
    fragments = std::move(next);
  }
  return fragments;
}

TEST(SpecialTokens, CutsTextAroundThem) {
  const SpecialTokens tokens = of({{"<a>", 1}, {"<bb>", 2}});
  EXPECT_EQ(tokens.cut("x<a>yy<bb><a>"),
            (Fragments{{kNoToken, "x"}, {1, "<a>"}, {kNoToken, "yy"}, {2, "<bb>"}, {1, "<a>"}}));
  EXPECT_EQ(tokens.cut("<a>"), (Fragments{{1, "<a>"}}));
  EXPECT_EQ(tokens.cut("<a <bb"), (Fragments{{kNoToken, "<a <bb"}}));
  EXPECT_EQ(tokens.cut(""), Fragments{});
  EXPECT_EQ(SpecialTokens().cut("abc"), (Fragments{{kNoToken, "abc"}}));
}

TEST(SpecialTokens, TheLongestWinsWhereverItBegins) {
  const SpecialTokens tokens = of({{"==>", 1}, {"=>>>", 2}, {"=", 3}});
  EXPECT_EQ(tokens.cut("==>>>"), (Fragments{{3, "="}, {2, "=>>>"}}));
  EXPECT_EQ(tokens.cut("==>>"), (Fragments{{1, "==>"}, {kNoToken, ">"}}));
}

TEST(SpecialTokens, OfEqualLengthsTheFirstInTheTextWins) {
  EXPECT_EQ(of({{"ab", 1}, {"bc", 2}}).cut("abc"), (Fragments{{1, "ab"}, {kNoToken, "c"}}));
  EXPECT_EQ(of({{"aa", 1}}).cut("aaaaa"), (Fragments{{1, "aa"}, {1, "aa"}, {kNoToken, "a"}}));
}

TEST(SpecialTokens, OneThatIsInTheWayGivesRoomToAShorterOne) {
  const SpecialTokens tokens = of({{"abcde", 1}, {"xxab", 2}, {"xx", 3}, {"x", 4}});
  EXPECT_EQ(tokens.cut("xxabcde"), (Fragments{{3, "xx"}, {1, "abcde"}}));
}

TEST(SpecialTokens, ALaterTokenOfTheSameTextCountsAndAnEmptyOneNever) {
  EXPECT_EQ(of({{"a", 1}, {"a", 2}, {"", 3}}).cut("ab"), (Fragments{{2, "a"}, {kNoToken, "b"}}));
}

TEST(SpecialTokens, AVeryLongTextIsNeverFound) {
  const std::string limit(SpecialTokens::kMaxBytes, 'a');
  SpecialTokens tokens;
  tokens.add(limit, 1);
  tokens.add(limit + "b", 2);
  EXPECT_EQ(tokens.cut(limit + "b"), (Fragments{{1, limit}, {kNoToken, "b"}}));
}

TEST(SpecialTokens, AnyBytesMayBeInThem) {
  SpecialTokens tokens;
  tokens.add(std::string_view("\0\xff", 2), 5);
  EXPECT_EQ(tokens.cut(std::string_view("a\0\xff", 3)),
            (Fragments{{kNoToken, "a"}, {5, std::string_view("\0\xff", 2)}}));
}

TEST(SpecialTokens, FindsWhatCuttingThemOutOneByOneFinds) {
  std::mt19937 random(3);
  const auto word = [&](size_t n) {
    std::string text;
    while (text.size() < n) text += static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int i = 0; i < 5000; ++i) {
    SpecialTokens tokens;
    std::vector<std::pair<std::string, TokenId>> list;
    for (size_t n = 1; n < 7; ++n) {
      if (random() % 3 == 0) continue;
      list.emplace_back(word(n), static_cast<TokenId>(n));
      tokens.add(list.back().first, list.back().second);
    }
    const std::string text = word(random() % 40);
    ASSERT_EQ(tokens.cut(text), cut_plainly(list, text)) << "case " << i << ": " << text;
  }
}

// OLMo and others have runs of 2 to 31 spaces as tokens: a megabyte of spaces is full of them.
// With the square of that it would not end within the test's time limit.
TEST(SpecialTokens, ALongRunOfThemIsCutAtItsLongest) {
  SpecialTokens tokens;
  for (size_t n = 2; n < 32; ++n) tokens.add(std::string(n, ' '), static_cast<TokenId>(n));
  const std::string text(1 << 20, ' ');
  EXPECT_EQ(tokens.cut(text).size(), (text.size() + 30) / 31);
}

}  // namespace
}  // namespace sluice::text
