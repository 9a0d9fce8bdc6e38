// What is refused as GBNF, and that the message says where and why.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "text/grammar/gbnf.h"
#include "unit/text/grammar/accepts.h"

namespace sluice::text {
namespace {

using test::gbnf_error;

struct WrongGrammar {
  std::string grammar;
  std::string error;
};

void check_errors(std::initializer_list<WrongGrammar> cases) {
  for (const WrongGrammar& c : cases) EXPECT_EQ(gbnf_error(c.grammar), c.error) << c.grammar;
}

TEST(GbnfError, SaysLineAndColumnOfWhatIsWrong) {
  check_errors({
      {"root ::= \"a",
       "grammar, line 1, column 12: found the end of the grammar, expected the closing \" "
       "of a literal"},
      {"root ::= \"a\nb\"",
       "grammar, line 1, column 12: found the end of the line, expected the closing "
       "\" of a literal"},
      {"root ::= [a-",
       "grammar, line 1, column 13: found the end of the grammar, expected a character"},
      {"root ::= [a",
       "grammar, line 1, column 12: found the end of the grammar, expected the closing ] "
       "of a class"},
      {"root ::= (\"a\"", "grammar, line 1, column 14: found the end of the grammar, expected )"},
      {"root ::= \"a\")", "grammar, line 1, column 13: found ), expected the end of the rule"},
      {"root := \"a\"", "grammar, line 1, column 6: found :, expected ::="},
      {"root \"a\"", "grammar, line 1, column 6: found \", expected ::="},
      {"é ::= \"a\"", "grammar, line 1, column 1: found é, expected the name of a rule"},
      {"root ::= \"a\"\n\n  x ::= é",
       "grammar, line 3, column 9: found é, expected a literal, a class, a "
       "group, a name or the end of the rule"},
      {"root ::= \"é\" *é",
       "grammar, line 1, column 15: found é, expected a literal, a class, a group, a "
       "name or the end of the rule"},
      {"root ::= * \"a\"",
       "grammar, line 1, column 10: found *, expected a literal, a class, a group, a "
       "name or the end of the rule"},
      {"root ::= [z-a]", "grammar, line 1, column 11: found a range that runs backwards"},
      {"root ::= \"a\" b ::= \"c\"",
       "grammar, line 1, column 14: found the rule b inside another; begin it on a new line"},
  });
}

TEST(GbnfError, RefusesBadCounts) {
  check_errors({
      {"root ::= \"a\"{",
       "grammar, line 1, column 14: found the end of the grammar, expected a count"},
      {"root ::= \"a\"{x}", "grammar, line 1, column 14: found x, expected a count"},
      {"root ::= \"a\"{,3}", "grammar, line 1, column 14: found ,, expected a count"},
      {"root ::= \"a\"{2",
       "grammar, line 1, column 15: found the end of the grammar, expected } or a "
       "second count"},
      {"root ::= \"a\"{3,2}",
       "grammar, line 1, column 13: found {3,2}, expected the smaller count first"},
      {"root ::= \"a\"{65537}",
       "grammar, line 1, column 14: found a count above 65536, which is the limit"},
      {"root ::= \"a\"{99999999999999999999}",
       "grammar, line 1, column 14: found a count above 65536, which is the limit"},
      {"root ::= \"a\"******",
       "grammar, line 1, column 18: found *, expected at most 4 quantifiers in a row"},
  });
}

TEST(GbnfError, RefusesBadEscapes) {
  check_errors({
      {R"(root ::= "\q")",
       "grammar, line 1, column 11: found an unknown escape, expected one of \\n \\r "
       "\\t \\\\ \\\" \\[ \\] \\- \\^ \\xHH \\uHHHH \\UHHHHHHHH"},
      {R"(root ::= "\x4")", "grammar, line 1, column 14: found \", expected 2 hexadecimal digits"},
      {R"(root ::= "\ud800")",
       "grammar, line 1, column 11: found an escape that is no Unicode character, "
       "expected U+0000 to U+10FFFF without surrogates"},
      {R"(root ::= "\U00110000")",
       "grammar, line 1, column 11: found an escape that is no Unicode "
       "character, expected U+0000 to U+10FFFF without surrogates"},
  });
}

TEST(GbnfError, RefusesTextThatIsNotUtf8) {
  check_errors({
      {"root ::= \"a\"\nb ::= \"\xff\"",
       "grammar, line 2, column 8: found a byte that is not UTF-8; save the grammar as UTF-8"},
      {"root ::= \"\xc3",
       "grammar, line 1, column 11: found a byte that is not UTF-8; save the grammar as "
       "UTF-8"},
  });
}

TEST(GbnfError, NamesRulesThatAreMissingOrThereTwice) {
  check_errors({
      {"",
       "grammar, line 1, column 1: found no rule called root, where every grammar begins; add one"},
      {"a ::= \"x\"\n",
       "grammar, line 2, column 1: found no rule called root, where every grammar begins; add one"},
      {"root ::= \"a\"\n  | other \"b\"",
       "grammar, line 2, column 5: found the name other, for which there is no rule"},
      {"root ::= \"a\"\nroot ::= \"b\"",
       "grammar, line 2, column 1: found a second rule called root, expected one"},
  });
}

TEST(GbnfError, NamesTheRulesOfALeftRecursion) {
  const std::string advice = "; write the repetition with * or put text first";
  check_errors({
      {"root ::= root \"a\" | \"b\"",
       "left recursion: root refers to itself before any text (root -> root)" + advice},
      {"root ::= \"x\" expr\nexpr ::= term \"+\" expr | term\nterm ::= (expr \"*\")? expr | \"1\"",
       "left recursion: expr refers to itself before any text (expr -> term -> expr)" + advice},
      // Hidden behind what may be empty.
      {"root ::= \" \"* empty root \"a\" | \"b\"\nempty ::= \"x\"?",
       "left recursion: root refers to itself before any text (root -> root)" + advice},
  });
  // Unused, or never reached, it does no harm.
  EXPECT_EQ(gbnf_error("root ::= \"a\"\nb ::= b \"x\" | \"y\""), "");
}

TEST(GbnfError, NamesTheRuleThatCannotEnd) {
  const std::string text = " has no end or contradicts itself; give it an alternative that ends";
  check_errors({
      {"root ::= \"a\" root", "nothing can ever match the grammar: root" + text},
      {"root ::= \"a\" b\nb ::= \"c\" b2 .{9}\nb2 ::= \"x\" [] .*",
       "nothing can ever match the grammar: b2" + text},
      {"root ::= [^\\x00-\\U0010ffff]", "nothing can ever match the grammar: root" + text},
  });
}

}  // namespace
}  // namespace sluice::text
