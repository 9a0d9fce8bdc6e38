// The matcher over tokens: characters cut in half, end tokens, copies, snapshots, dead ends, and
// what it remembers.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/matcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "text/grammar/gbnf.h"
#include "unit/text/grammar/accepts.h"
#include "unit/text/grammar/vocabulary.h"

namespace sluice::text {
namespace {

GrammarMatcher make(std::string_view grammar, std::vector<std::string> tokens,
                    std::vector<TokenId> end_tokens) {
  return {std::make_shared<const Grammar>(compile_gbnf(grammar)),
          std::make_shared<const TokenTrie>(std::move(tokens)), std::move(end_tokens)};
}

std::vector<TokenId> allowed(const GrammarMatcher& matcher, size_t n_tokens) {
  // Garbage in the words shows whether they are overwritten; one word too many, whether cleared.
  std::vector<uint64_t> bits(n_tokens / 64 + 2, ~uint64_t{0});
  matcher.fill_mask(bits);
  std::vector<TokenId> out;
  for (size_t t = 0; t < bits.size() * 64; ++t) {
    if ((bits[t / 64] >> (t % 64) & 1) != 0) out.push_back(static_cast<TokenId>(t));
  }
  return out;
}

using Ids = std::vector<TokenId>;

TEST(GrammarMatcher, AllowsTokensThatCutCharactersInHalf) {
  // 世 is e4 b8 96, 界 is e7 95 8c.
  GrammarMatcher m = make(
      "root ::= \"世界\" [é-ü]",
      {"世", "\xe4", "\xb8\x96", "\xe4\xb8", "\x96\xe7\x95", "\x8c\xc3", "\xa9", "\xbd", "界", "é"},
      {});
  EXPECT_EQ(allowed(m, 10), (Ids{0, 1, 3}));
  ASSERT_TRUE(m.accept(3));
  EXPECT_EQ(allowed(m, 10), (Ids{4}));
  ASSERT_TRUE(m.accept(4));
  EXPECT_EQ(allowed(m, 10), (Ids{5}));
  ASSERT_TRUE(m.accept(5));
  EXPECT_FALSE(m.is_complete());
  EXPECT_EQ(allowed(m, 10), (Ids{6})) << "c3 a9 is é; c3 bd is ý, behind ü";
  ASSERT_TRUE(m.accept(6));
  EXPECT_TRUE(m.is_complete());
}

TEST(GrammarMatcher, RefusesBytesThatAreNoUtf8) {
  GrammarMatcher m = make(
      "root ::= .*",
      {"\xff", "\xc0", "\x80", "\xed", "\xa0\x80", "\x9f\xbf", "\xf4", "\x90", "\x8f\xbf\xbf"}, {});
  EXPECT_EQ(allowed(m, 9), (Ids{3, 6}));
  ASSERT_TRUE(m.accept(3));
  EXPECT_EQ(allowed(m, 9), (Ids{2, 5, 7})) << "ed a0 80 would be a surrogate";
  ASSERT_TRUE(m.accept(5));
  ASSERT_TRUE(m.accept(6));
  EXPECT_EQ(allowed(m, 9), (Ids{2, 8})) << "f4 90 would be above U+10FFFF";
}

TEST(GrammarMatcher, AllowsEndTokensExactlyWhereTheGrammarMayEnd) {
  // Token 2 has bytes that would match, token 3 is a control token that is no end.
  GrammarMatcher m = make("root ::= \"a\" \"a\"?", {"a", "", "a", ""}, {1, 2});
  EXPECT_FALSE(m.is_complete());
  EXPECT_EQ(allowed(m, 4), (Ids{0}));
  EXPECT_FALSE(m.accept(1));
  EXPECT_FALSE(m.accept(2));
  EXPECT_FALSE(m.accept(3));
  ASSERT_TRUE(m.accept(0));
  EXPECT_EQ(allowed(m, 4), (Ids{0, 1, 2}));
  ASSERT_TRUE(m.accept(0));
  EXPECT_EQ(allowed(m, 4), (Ids{1, 2}));
  EXPECT_FALSE(m.is_finished());
  ASSERT_TRUE(m.accept(2));
  EXPECT_TRUE(m.is_finished());
  EXPECT_TRUE(m.is_complete());
  EXPECT_FALSE(m.is_dead());
  EXPECT_EQ(allowed(m, 4), Ids{});
  for (const TokenId token : {0, 1, 2}) EXPECT_FALSE(m.accept(token)) << token;
  EXPECT_FALSE(m.accept_bytes("a"));
  m.reset();
  EXPECT_FALSE(m.is_finished());
  EXPECT_EQ(allowed(m, 4), (Ids{0}));
}

TEST(GrammarMatcher, ChangesNothingWhenATokenIsRefused) {
  GrammarMatcher m =
      make("root ::= (\"ab\" | \"(\" root \")\")*", {"a", "b", "abx", "(", ")", "((x"}, {});
  ASSERT_TRUE(m.accept(3));
  const Ids before = allowed(m, 6);
  for (const TokenId refused : {1, 2, 5}) {
    EXPECT_FALSE(m.accept(refused));
    EXPECT_EQ(allowed(m, 6), before) << "after token " << refused;
  }
  EXPECT_FALSE(m.accept_bytes("ab)ab)"));
  EXPECT_EQ(allowed(m, 6), before);
  EXPECT_TRUE(m.accept_bytes("ab)"));
  EXPECT_TRUE(m.is_complete());
}

TEST(GrammarMatcher, GoesBackToASnapshot) {
  GrammarMatcher m = make("root ::= \"[\" (root (\",\" root)*)? \"]\" | [0-9]+",
                          {"[", "]", ",", "1", "[[1,", "]]"}, {});
  ASSERT_TRUE(m.accept(4));
  const Ids here = allowed(m, 6);
  const auto snapshot = m.snapshot();
  const GrammarMatcher copy = m;
  for (const TokenId token : {4, 3, 5, 2, 3, 5}) ASSERT_TRUE(m.accept(token)) << token;
  EXPECT_TRUE(m.is_complete());
  EXPECT_EQ(allowed(copy, 6), here) << "a copy goes its own way";
  m.restore(snapshot);
  EXPECT_FALSE(m.is_complete());
  EXPECT_EQ(allowed(m, 6), here);
  // More nesting than the stacks hold before they are tidied.
  for (int i = 0; i < 500; ++i) ASSERT_TRUE(m.accept(0));
  for (int i = 0; i < 502; ++i) ASSERT_TRUE(m.accept(1)) << i;
  EXPECT_TRUE(m.is_complete());
  EXPECT_FALSE(m.accept(1));
}

TEST(GrammarMatcher, IsDeadOnlyWhereTheVocabularyLacksBytes) {
  GrammarMatcher m = make("root ::= \"a\" \"b\" \"c\"?", {"a", "b", ""}, {2});
  EXPECT_FALSE(m.is_dead());
  ASSERT_TRUE(m.accept(0));
  ASSERT_TRUE(m.accept(1));
  EXPECT_FALSE(m.is_dead()) << "the end is possible";
  EXPECT_EQ(allowed(m, 3), (Ids{2}));
  GrammarMatcher stuck = make("root ::= \"a\" \"x\"", {"a", "b"}, {});
  ASSERT_TRUE(stuck.accept(0));
  EXPECT_TRUE(stuck.is_dead());
  EXPECT_EQ(allowed(stuck, 2), Ids{});
}

TEST(GrammarMatcher, MasksAnEmptyVocabulary) {
  GrammarMatcher m = make("root ::= \"a\"", {}, {});
  EXPECT_EQ(allowed(m, 0), Ids{});
  EXPECT_TRUE(m.is_dead());
}

// A token may close several rules and open others: `"}]},{"` in one go.
TEST(GrammarMatcher, FollowsATokenThroughManyRules) {
  GrammarMatcher m(
      std::make_shared<const Grammar>(compile_json_schema(
          R"({"type":"array","items":{"type":"object","properties":{"a":{"type":"array",
                           "items":{"type":"string"}},"b":{"type":"integer"}},"required":["a"]}})")),
      std::make_shared<const TokenTrie>(std::vector<std::string>{
          R"([{"a":["x)", R"("]},{"a":["y","z)", R"("],"b":1},{"a":[]}])", R"("]},{"b)", R"(]})"}),
      {});
  EXPECT_EQ(allowed(m, 5), (Ids{0}));
  ASSERT_TRUE(m.accept(0));
  EXPECT_EQ(allowed(m, 5), (Ids{1, 2, 4})) << "token 4 is text inside the string";
  ASSERT_TRUE(m.accept(1));
  ASSERT_TRUE(m.accept(2));
  EXPECT_TRUE(m.is_complete());
}

// Every way to cut a text into tokens of a vocabulary ends in the same place.
TEST(GrammarMatcher, DoesNotCareHowATextIsCut) {
  const std::string text = R"({"näme": ["世界", 1.5e3, {"x": null}], "😀": true})";
  const auto grammar = std::make_shared<const Grammar>(compile_json_object());
  const auto trie = std::make_shared<const TokenTrie>(test::natural_vocabulary(300));
  const GrammarMatcher start(grammar, trie, {});
  for (size_t cut = 0; cut <= text.size(); ++cut) {
    GrammarMatcher m = start;
    ASSERT_TRUE(m.accept_bytes(text.substr(0, cut))) << cut;
    EXPECT_EQ(m.is_complete(), cut == text.size()) << cut;
    GrammarMatcher bytes = start;
    for (size_t i = 0; i < cut; ++i) ASSERT_TRUE(bytes.accept(static_cast<uint8_t>(text[i])));
    EXPECT_EQ(allowed(m, 300), allowed(bytes, 300)) << cut;
    ASSERT_TRUE(m.accept_bytes(text.substr(cut))) << cut;
    EXPECT_TRUE(m.is_complete());
  }
}

// Copies share what they learn; several threads learn at once.
TEST(GrammarMatcher, CopiesWorkOnSeveralThreads) {
  const auto trie = std::make_shared<const TokenTrie>(test::natural_vocabulary(2000));
  const GrammarMatcher start(std::make_shared<const Grammar>(compile_json_object()), trie, {});
  const std::string text = R"({"a": [1, 2, {"b": "some text"}], "c": {"d": [true, false, null]}})";
  std::vector<Ids> masks[4];
  std::vector<std::thread> threads;
  for (auto& mine : masks) {
    threads.emplace_back([&start, &text, &mine, matcher = start]() mutable {
      for (const char byte : text) {
        mine.push_back(allowed(matcher, 2000));
        matcher.accept(static_cast<uint8_t>(byte));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_EQ(masks[0].size(), text.size());
  for (const auto& mine : masks) EXPECT_EQ(mine, masks[0]);
}

TEST(GrammarMatcherDeathTest, ChecksTheSizeOfTheMaskAndTheIds) {
  GrammarMatcher m = make("root ::= \"a\"", std::vector<std::string>(65, "a"), {});
  std::vector<uint64_t> bits(1);
  EXPECT_DEATH(m.fill_mask(bits), "CHECK");
  EXPECT_DEATH(m.accept(65), "CHECK");
  EXPECT_DEATH(m.accept(-1), "CHECK");
  EXPECT_DEATH(make("root ::= \"a\"", {"a"}, {1}), "CHECK");
}

}  // namespace
}  // namespace sluice::text
