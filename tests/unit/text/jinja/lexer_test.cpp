// Tokens of templates: kinds, places and literals, and what is no token.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/parse/lexer.h"

#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

struct Lexed {
  Source source;  // what the tokens point into
  std::vector<Token> tokens;
  explicit Lexed(std::string_view text) {
    set_source(source, text, {});
    tokens = tokenize(source);
  }
};

TEST(JinjaLexer, TellsTextOutputAndBlocksApart) {
  const Lexed lexed("a{{ b }}c{% d %}e{# f #}g");
  using K = Token::Kind;
  const std::vector<std::pair<K, std::string_view>> expected = {
      {K::text, "a"}, {K::output_begin, "{{"}, {K::name, "b"}, {K::output_end, "}}"},
      {K::text, "c"}, {K::block_begin, "{%"},  {K::name, "d"}, {K::block_end, "%}"},
      {K::text, "e"}, {K::text, "g"},          {K::end, ""},
  };
  ASSERT_EQ(lexed.tokens.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(lexed.tokens[i].kind, expected[i].first) << "token " << i;
    EXPECT_EQ(lexed.tokens[i].text, expected[i].second) << "token " << i;
  }
}

TEST(JinjaLexer, KnowsLineAndColumnOfEveryToken) {
  const Lexed lexed("one\r\n  {{ two\n + three }}\n");
  struct Place {
    std::string_view text;
    int line, column;
  };
  const std::vector<Place> expected = {{"one\n  ", 1, 1}, {"{{", 2, 3},    {"two", 2, 6},
                                       {"+", 3, 2},       {"three", 3, 4}, {"}}", 3, 10}};
  ASSERT_GE(lexed.tokens.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const Token& token = lexed.tokens[i];
    EXPECT_EQ(token.text, expected[i].text) << "token " << i;
    EXPECT_EQ(token.at.line, expected[i].line) << "token " << i << ", " << token.text;
    EXPECT_EQ(token.at.column, expected[i].column) << "token " << i << ", " << token.text;
  }
}

TEST(JinjaLexer, TakesTheLongestSymbol) {
  const Lexed lexed("{{ a**b//c>=d<=e==f!=g*h/i }}");
  std::string symbols;
  for (const Token& token : lexed.tokens) {
    if (token.kind == Token::Kind::symbol) symbols += std::string(token.text) + " ";
  }
  EXPECT_EQ(symbols, "** // >= <= == != * / ");
}

TEST(JinjaLexer, EndsATagOnlyOutsideOfBrackets) {
  expect_renders({{"{{ {'a': {'b': 1}}['a']['b'] }}", "1"},
                  {"{{ '}}' }}{{ \"%}\" }}", "}}%}"},
                  {"{% set x = {'a': {}} %}{{ x.a }}", "{}"}});
}

TEST(JinjaLexer, ReadsStringsWithPythonsEscapes) {
  expect_renders({{R"({{ 'a\nb\t\\\'\"' }})", "a\nb\t\\'\""},
                  {R"({{ "\x41\u00e9\U0001F44B\101" }})", "Aé👋A"},
                  {R"({{ '\a\b\f\r\v' }})", "\a\b\f\r\v"},
                  {R"({{ 'a\qb\ ' }})", R"(a\qb\ )"},
                  {"{{ 'a\\\nb' }}", "ab"},
                  {"{{ 'a\nb' }}", "a\nb"},
                  {R"({{ 'a' "b" 'c' }})", "abc"},
                  {R"({{ 'it''s' }})", "its"},
                  {"{{ '' }}", ""}});
}

TEST(JinjaLexer, ReadsNumbers) {
  expect_renders({{"{{ 0 }} {{ 00 }} {{ 42 }} {{ 1_000_000 }}", "0 0 42 1000000"},
                  {"{{ 0x1F }} {{ 0b101 }} {{ 0o17 }} {{ 0XfF }}", "31 5 15 255"},
                  {"{{ 1.5 }} {{ 1e3 }} {{ 2.5e-3 }} {{ 1E+2 }}", "1.5 1000.0 0.0025 100.0"},
                  {"{{ 9223372036854775807 }}", "9223372036854775807"},
                  {"{{ [[5, 6]].0.1 }}", "6"}});
}

TEST(JinjaLexer, RefusesWhatIsNoToken) {
  expect_fails(Errc::bad_file,
               {{"a\n {{ 'b }}", "line 2, column 5: string literal: the closing quote is missing"},
                {"{{ a ? b }}", "line 1, column 6: the character '?' has no meaning"},
                {"{{ (a] }}", "column 6: found ']', expected ')'"},
                {"{{ a) }}", "column 5: ')' closes nothing"},
                {"{{ a", "column 1: output: '}}' is missing"},
                {"{% if a", "column 1: block: '%}' is missing"},
                {"x {# y", "column 3: comment: '#}' is missing"},
                {"{% raw %}x", "block 'raw': '{% endraw %}' is missing"},
                {"{{ 9223372036854775808 }}", "does not fit 64 bits"},
                {"{{ 1e999 }}", "does not fit a float"},
                {R"({{ '\x4' }})", R"(the escape \x does not name a character)"},
                {R"({{ '\ud800' }})", R"(the escape \u does not name a character)"},
                {R"({{ '\N{DASH}' }})", R"(\N{...} is not supported)"}});
}

TEST(JinjaLexer, RefusesBytesThatAreNotUtf8) {
  expect_fails(Errc::bad_file,
               {{"ab\xff", "not valid UTF-8 at byte 2"}, {"ab\xc3", "not valid UTF-8 at byte 2"}});
}

TEST(JinjaLexer, RefusesATemplateBeyondTheLimit) {
  Limits limits;
  limits.source_bytes = 10;
  EXPECT_EQ(render("0123456789", Json::object(), limits), "0123456789");
  const Failure failure = failure_of("0123456789a", Json::object(), limits);
  EXPECT_EQ(failure.code, Errc::bad_file);
  EXPECT_NE(failure.text.find("11 B, the limit is 10 B"), std::string::npos) << failure.text;
}

}  // namespace
}  // namespace sluice::text::jinja
