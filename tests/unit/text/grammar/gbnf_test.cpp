// What texts a GBNF grammar matches: every construct of the notation, both ways.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/gbnf.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "unit/text/grammar/accepts.h"

namespace sluice::text {
namespace {

using test::gbnf_verdict;

struct MatchCase {
  std::string grammar;
  std::vector<std::string> matches;
  std::vector<std::string> others;  // beginnings of matches, or refused
};

void check(const std::vector<MatchCase>& cases) {
  for (const MatchCase& c : cases) {
    for (const std::string& text : c.matches) {
      EXPECT_EQ(gbnf_verdict(c.grammar, text), "match") << c.grammar << "\ntext: " << text;
    }
    for (const std::string& text : c.others) {
      EXPECT_NE(gbnf_verdict(c.grammar, text), "match") << c.grammar << "\ntext: " << text;
    }
  }
}

TEST(Gbnf, MatchesLiteralsSequencesAndAlternatives) {
  check({
      {R"(root ::= "abc")", {"abc"}, {"", "ab", "abd", "abcd", "ABC"}},
      {R"(root ::= "a" "b" "c")", {"abc"}, {"", "a b c", "ac"}},
      {R"(root ::= "yes" | "no")", {"yes", "no"}, {"", "y", "yesno"}},
      {R"(root ::= "a" | "ab" | "abc")", {"a", "ab", "abc"}, {"", "abcd", "b"}},
      {R"(root ::= "")", {""}, {"a"}},
      {R"(root ::= | "x")", {"", "x"}, {"xx"}},
      {R"(root ::= "x" |)", {"", "x"}, {"xx"}},
      {R"(root ::= "a" "" "b")", {"ab"}, {"a"}},
  });
}

TEST(Gbnf, MatchesEscapes) {
  check({
      {R"(root ::= "\n\r\t\\\"\[\]")", {"\n\r\t\\\"[]"}, {"nrt"}},
      {R"(root ::= "\x41\u00e9\U0001F600")", {"Aé😀"}, {"A", "x41"}},
      {R"(root ::= "\xe9")", {"é"}, {"\xe9"}},
      {R"(root ::= [\n\t\]\\\-\^])", {"\n", "\t", "]", "\\", "-", "^"}, {"n", "[", ""}},
      {R"(root ::= "\u0000")", {std::string(1, '\0')}, {""}},
  });
}

TEST(Gbnf, MatchesCharacterClasses) {
  check({
      {"root ::= [a-c]", {"a", "b", "c"}, {"", "d", "-", "ab"}},
      {"root ::= [^a-c]", {"d", "é", "世", "😀", "\n", "-"}, {"a", "b", "c", "", "dd"}},
      {"root ::= [a-cx-z0]", {"a", "y", "0"}, {"d", "w", "-"}},
      {"root ::= [-a]", {"-", "a"}, {"b"}},
      {"root ::= [a-]", {"-", "a"}, {"b"}},
      {"root ::= [a^]", {"^", "a"}, {"b"}},
      {"root ::= [é-ü世]", {"é", "ö", "ü", "世"}, {"e", "u", "界"}},
      {R"(root ::= [\u0400-\u04ff])", {"ж", "я"}, {"z", "é"}},
      {R"(root ::= [\U0001F300-\U0001F6FF])", {"😀"}, {"世"}},
      {R"(root ::= [^"\\])", {"a", "é"}, {"\"", "\\"}},
      {"root ::= .", {"a", "\n", "é", "😀"}, {"", "ab", "\x80", "\xff"}},
      {"root ::= [#] \"#\" # a comment", {"##"}, {"#"}},
  });
}

TEST(Gbnf, MatchesRepetitions) {
  check({
      {R"(root ::= "ab"*)", {"", "ab", "abab"}, {"a", "aba", "ba"}},
      {R"(root ::= "ab"+)", {"ab", "ababab"}, {"", "a"}},
      {R"(root ::= "ab"?)", {"", "ab"}, {"a", "abab"}},
      {R"(root ::= "a"{3})", {"aaa"}, {"", "aa", "aaaa"}},
      {R"(root ::= "a"{2,})", {"aa", "aaaaaaa"}, {"", "a"}},
      {R"(root ::= "a"{1,3})", {"a", "aa", "aaa"}, {"", "aaaa"}},
      {R"(root ::= "a"{0,2} "b")", {"b", "ab", "aab"}, {"aaab", "a"}},
      {R"(root ::= "a"{0} "b")", {"b"}, {"ab"}},
      {R"(root ::= "a"{ 1 , 2 })", {"a", "aa"}, {"aaa"}},
      {R"(root ::= [a-z] + "!" ?)", {"abc", "abc!"}, {"", "!"}},
      {R"(root ::= ("a" | "b")* "c")", {"c", "abbac"}, {"ab", "d"}},
      {R"(root ::= "a"{2}{2})", {"aaaa"}, {"aa", "aaa"}},
      {R"(root ::= ("a"?)* "b")", {"b", "aaab"}, {"a"}},
      {R"(root ::= (("a"*)*)*)", {"", "aaa"}, {"b"}},
  });
}

// Beyond 2048 copies, counts are written as calls of a rule for 1024 of them.
TEST(Gbnf, CountsExactlyBeyondTheCopiesItWritesOut) {
  struct Count {
    const char* braces;
    std::vector<size_t> yes, no;
  };
  const std::vector<Count> counts = {
      {"{2047}", {2047}, {0, 2046, 2048}},
      {"{3000}", {3000}, {0, 1024, 2999, 3001}},
      {"{1024,2049}", {1024, 1025, 2048, 2049}, {1023, 2050}},
      {"{0,5000}", {0, 1, 1023, 1024, 1025, 4096, 4999, 5000}, {5001, 6000}},
      {"{3000,5000}", {3000, 3001, 4095, 4096, 4097, 5000}, {0, 2999, 5001}},
      {"{4100,}", {4100, 4101, 9000}, {0, 4099}},
      {"{65536}", {65536}, {65535, 65537}},
  };
  for (const Count& c : counts) {
    const std::string grammar = cat("root ::= \"<\" [xé]", c.braces, " \">\"");
    const GrammarMatcher matcher = test::matcher_of(compile_gbnf(grammar));
    for (const bool expected : {true, false}) {
      for (const size_t n : expected ? c.yes : c.no) {
        const std::string text = cat("<", std::string(n, 'x'), ">");
        EXPECT_EQ(test::verdict(matcher, text) == "match", expected) << grammar << ", " << n;
      }
    }
  }
}

TEST(Gbnf, LetsRulesCallEachOtherInAnyOrder) {
  check({
      {"root ::= b a\na ::= \"1\"\nb ::= \"2\" a?", {"21", "211"}, {"2", "12", "2111"}},
      {"root ::= \"(\" root \")\" | \"x\"", {"x", "(x)", "((x))"}, {"", "(x", "((x)", "x)"}},
      {"root ::= \"a\" root | \"\"", {"", "a", "aaaa"}, {"b"}},
      {"root ::= \"a\" root \"b\" | \"\"", {"", "ab", "aaabbb"}, {"aab", "abb", "ba"}},
      {"root ::= list\nlist ::= item (\",\" item)*\nitem ::= [0-9]+ | \"[\" list \"]\"",
       {"1", "1,22", "[1,[2,3],4],5"},
       {"", "1,", "[1", "[]"}},
      // An empty rule in front of a call of itself is no left recursion as long as text comes
      // first.
      {"root ::= e \"a\" e root | e\ne ::= \"\"", {"", "a", "aaa"}, {"b"}},
      {"my-rule_1 ::= \"x\"\nroot ::= my-rule_1", {"x"}, {""}},
  });
}

// The same text by several ways: calls that return to different places must not be mixed up.
TEST(Gbnf, KeepsAmbiguousWaysApart) {
  check({
      {"root ::= a \"!\" | b \"?\"\na ::= x\nb ::= x\nx ::= \"(\" (a | b) \")\" | \"1\"",
       {"1!", "1?", "((1))!", "(1)?"},
       {"1", "(1!", "1!?"}},
      {"root ::= s\ns ::= \"a\" s | \"a\" s \"b\" | \"\"",
       {"", "a", "aab", "aaabbb", "aaab"},
       {"b", "abb", "aabbb"}},
      {"root ::= p \"1\" | q \"2\"\np ::= \"x\" p | \"x\"\nq ::= \"x\" q \"y\" | \"x\"",
       {"x1", "xxx1", "x2", "xxy2", "xxxyy2"},
       {"xy1", "xx2", "xxy1"}},
  });
}

TEST(Gbnf, ReadsLinesAndComments) {
  check({
      {"# first\n\nroot ::= # comment\n  \"a\" # more\n\n# last", {"a"}, {""}},
      {"root ::= (\n  \"a\"\n  \"b\" # inside\n  |\n  \"c\"\n)", {"ab", "c"}, {"a"}},
      {"root ::= \"a\" |\n  \"b\"", {"a", "b"}, {"ab"}},
      {"root ::= \"a\"\n  | \"b\"\n  | \"c\"\nother ::= \"d\"", {"a", "b", "c"}, {"d"}},
      {"root ::= \"a\"\r\nb ::= \"b\"\r\n", {"a"}, {"b"}},
      {"root ::=\n  \"a\"", {"a"}, {""}},
  });
}

TEST(Gbnf, SaysWhereATextStopsMatching) {
  const char* grammar = R"(root ::= "é" [0-9]+)";
  EXPECT_EQ(gbnf_verdict(grammar, ""), "begin");
  EXPECT_EQ(gbnf_verdict(grammar, "\xc3"), "begin");
  EXPECT_EQ(gbnf_verdict(grammar, "é"), "begin");
  EXPECT_EQ(gbnf_verdict(grammar, "é12"), "match");
  EXPECT_EQ(gbnf_verdict(grammar, "\xc3\xa8"), "at 1");
  EXPECT_EQ(gbnf_verdict(grammar, "é1x"), "at 3");
}

// A dead end is refused where it begins, not where it would be noticed.
TEST(Gbnf, NeverEntersWhatCannotEnd) {
  const char* grammar = "root ::= \"a\" loop | \"b\"\nloop ::= \"a\" loop";
  EXPECT_EQ(gbnf_verdict(grammar, "a"), "at 0");
  EXPECT_EQ(gbnf_verdict(grammar, "b"), "match");
  EXPECT_EQ(gbnf_verdict("root ::= [] \"x\" | \"y\"", "x"), "at 0");
}

}  // namespace
}  // namespace sluice::text
