// Strings under a schema: JSON's own rules, lengths, patterns and formats.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "text/grammar/code_points.h"
#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/accepts.h"

namespace sluice::text {
namespace {

using test::expect_schema;
using test::schema_error;
using test::schema_verdict;

TEST(JsonSchemaString, IsAnyJsonString) {
  expect_schema(R"({"type":"string"})",
                {R"("")", R"("abc")", R"("é世😀")", R"("\"\\\/\b\f\n\r\t")",
                 R"("\u00e9\uABCD\u0000")", R"("\ud83d\ude00")", R"("\uD83D\uDE00x")", "\"\x7f\""},
                {"", "\"", "abc", R"("a)", R"("a"b)", "\"a\nb\"", "\"\t\"", R"("\x")", R"("\u12")",
                 R"("\u12g4")", R"("\ud83d")", R"("\ude00")", R"("\ud83d\u0041")", R"("\")",
                 "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"", "null", "1"});
}

// What is accepted, a JSON parser accepts: every one and two bytes between the quotes.
TEST(JsonSchemaString, AcceptsWhatAParserAccepts) {
  const GrammarMatcher matcher = test::matcher_of(compile_json_schema(R"({"type":"string"})"));
  int n_accepted = 0;
  for (int a = 0; a < 256; ++a) {
    if (a == '"') continue;  // ends the string; and the parser takes a zero byte for the end
    for (int b = 0; b < 256; ++b) {
      const std::string text = {'"', static_cast<char>(a), static_cast<char>(b), '"'};
      const bool expected = nlohmann::json::accept(text);
      ASSERT_EQ(test::verdict(matcher, text) == "match", expected) << a << " " << b;
      n_accepted += expected ? 1 : 0;
    }
  }
  EXPECT_GT(n_accepted, 10000);
}

TEST(JsonSchemaString, HasALengthInCharacters) {
  expect_schema(
      R"({"type":"string","minLength":2,"maxLength":3})",
      {R"("ab")", R"("abc")", R"("世界")", R"("😀😀😀")", R"("\n\u00e9")", R"("\ud83d\ude00a")"},
      {R"("")", R"("a")", R"("abcd")", R"("世")", R"("\n")", R"("\ud83d\ude00")", R"("😀😀😀😀")"});
  expect_schema(R"({"type":"string","minLength":1})", {R"("a")", R"("abcdefgh")"}, {R"("")"});
  expect_schema(R"({"type":"string","maxLength":0})", {R"("")"}, {R"("a")"});
  expect_schema(R"({"maxLength":1})", {R"("")", R"("a")"}, {"1", "null"});
  expect_schema(R"({"type":"string","maxLength":2.0})", {R"("ab")"}, {R"("abc")"});
}

TEST(JsonSchemaString, MatchesAnchoredPatterns) {
  expect_schema(R"({"type":"string","pattern":"^[A-Z]{2}\\d{1,3}$"})", {R"("AB1")", R"("ZZ999")"},
                {R"("AB")", R"("AB1234")", R"("ab1")", R"("xAB1")"});
  expect_schema(R"({"pattern":"^(foo|ba[rz])+$"})", {R"("foo")", R"("barbazfoo")"},
                {R"("")", R"("fo")", R"("bax")"});
  expect_schema(R"({"pattern":"^(?:a|(?<name>b))*?c??$"})", {R"("")", R"("abc")", R"("c")"},
                {R"("cc")", R"("d")"});
  expect_schema(R"({"pattern":"^\\S+@\\S+\\.\\w{2,}$"})", {R"("me@site.org")"},
                {R"("me@site")", R"("m e@site.org")", R"("@site.org")"});
  expect_schema(R"({"pattern":"^a{2,}b{3}c?$"})", {R"("aabbb")", R"("aaabbbc")"},
                {R"("abbb")", R"("aabb")", R"("aabbbcc")"});
  expect_schema(R"({"pattern":"^$"})", {R"("")"}, {R"("a")"});
}

TEST(JsonSchemaString, MatchesPatternsAnywhereUnlessAnchored) {
  expect_schema(R"({"pattern":"b+"})", {R"("b")", R"("abc")", R"("\"b\u00e9")"},
                {R"("")", R"("ac")"});
  expect_schema(R"({"pattern":"^a"})", {R"("a")", R"("ab")"}, {R"("ba")"});
  expect_schema(R"({"pattern":"a$"})", {R"("a")", R"("ba")"}, {R"("ab")"});
  expect_schema(R"({"pattern":"^a|b$"})", {R"("ax")", R"("xb")", R"("a")"}, {R"("xa")", R"("bx")"});
  expect_schema(R"({"pattern":""})", {R"("")", R"("anything")"}, {"1"});
}

TEST(JsonSchemaString, WritesPatternCharactersWithTheEscapesTheyNeed) {
  expect_schema(R"({"pattern":"^[\"\\\\\\n\\x01]$"})",
                {R"("\"")", R"("\\")", R"("\n")", R"("\u0001")"},
                {R"(""")", R"("\u0022")", R"("\u000a")", R"("\t")", R"("n")"});
  expect_schema(R"({"pattern":"^.$"})", {R"("a")", R"("世")", R"("\t")", R"("\u0000")", R"("\"")"},
                {R"("\n")", R"("\r")", "\"\u2028\"", R"("ab")", R"("")"});
  expect_schema(R"({"pattern":"^[^a]$"})", {R"("b")", R"("\n")", R"("\\")", R"("😀")"},
                {R"("a")", R"("")"});
  expect_schema(R"({"pattern":"^\\u00e9\\u{1F600}\\ud83d\\ude01$"})", {R"("é😀😁")"}, {R"("é😀")"});
  expect_schema(R"({"pattern":"^[\\w.-]+[\\d\\-a][\\s]$"})", {R"("a.-1 ")", R"("_-\t")"},
                {R"("a.x ")"});
  expect_schema(R"({"pattern":"^[^\\D]\\W\\D[\\b]$"})", {R"("1 a\b")"},
                {R"("a a\b")", R"("1bab")"});
}

TEST(JsonSchemaString, CombinesPatternFormatAndLength) {
  expect_schema(R"({"pattern":"^[a-z]+$","minLength":2,"maxLength":4})", {R"("ab")", R"("abcd")"},
                {R"("a")", R"("abcde")", R"("AB")"});
  expect_schema(R"({"format":"date","pattern":"^2024"})", {R"("2024-02-29")"},
                {R"("2023-01-01")", R"("2024")"});
  expect_schema(R"({"pattern":"x","maxLength":2})", {R"("x")", R"("ax")", R"("x\n")"},
                {R"("ab")", R"("abx")"});
}

TEST(JsonSchemaString, RefusesPatternsItCannotExpress) {
  struct Case {
    const char* pattern;
    const char* error;
  };
  for (const Case& c : std::initializer_list<Case>{
           {"a(?=b)",
            "found, 3 bytes in, (? that is neither (?: nor (?<name>; lookaround is not supported"},
           {"(?<!a)b",
            "found, 2 bytes in, (? that is neither (?: nor (?<name>; lookaround is not supported"},
           {"(a)\\1", "found, 5 bytes in, \\1, which is not supported"},
           {"\\bword", "found, 2 bytes in, \\b, which is not supported"},
           {"\\p{L}", "found, 2 bytes in, \\p, which is not supported"},
           {"a^b", "found, 1 bytes in, ^ that is not at the beginning"},
           {"a$b", "found, 2 bytes in, $ that is not at the end"},
           {"(a$)", "found, 2 bytes in, $ inside a group"},
           {"(^a)", "found, 1 bytes in, ^ that is not at the beginning"},
           {"a)", "found, 1 bytes in, an unmatched )"},
           {"(a", "found, 2 bytes in, a group without its )"},
           {"[a", "found, 2 bytes in, a class without its ]"},
           {"[a-", "found, 3 bytes in, a class without its ]"},
           {"[b-a]", "found, 4 bytes in, a range that runs backwards"},
           {"[\\d-z]", "found, 5 bytes in, a range between classes"},
           {"*a",
            "found, 0 bytes in, a quantifier with nothing to repeat; write \\ before a plain "
            "character"},
           {"a**",
            "found, 2 bytes in, a quantifier with nothing to repeat; write \\ before a plain "
            "character"},
           {"a{2,1}", "found, 6 bytes in, a count {m,n} with m above n"},
           {"a{,2}", "found, 2 bytes in, { that is not {m}, {m,} or {m,n}"},
           {"a]", "found, 1 bytes in, an unmatched bracket; write \\ before a plain one"},
           {"a\\", "found, 2 bytes in, a backslash at the end"},
           {"\\x4", "found, 3 bytes in, an escape without its hexadecimal digits"},
           {"\\ud800", "found, 6 bytes in, half of a surrogate pair"},
           {"\\u{110000}", "found, 9 bytes in, an escape above U+10FFFF"},
       }) {
    const std::string schema = nlohmann::json{{"pattern", c.pattern}}.dump();
    EXPECT_EQ(schema_error(schema), cat("JSON schema, #: pattern ", c.pattern, ": ", c.error));
  }
}

TEST(JsonSchemaString, HasFormats) {
  struct Case {
    const char* format;
    std::vector<std::string> yes, no;
  };
  const std::vector<Case> cases = {
      {"date",
       {"2024-02-29", "2000-02-29", "1999-12-31", "2023-04-30"},
       {"2023-02-29", "1900-02-29", "2023-04-31", "2023-13-01", "2023-00-10", "2023-1-1",
        "23-01-01"}},
      {"time",
       {"12:34:56Z", "23:59:59.123+02:00", "00:00:00-23:59"},
       {"24:00:00Z", "12:60:00Z", "12:00:60Z", "12:34:56", "12:34:56+24:00"}},
      {"date-time", {"2024-02-29T12:00:00Z"}, {"2024-02-30T12:00:00Z", "2024-02-29 12:00:00Z"}},
      {"duration", {"P1D", "PT5M", "P1Y2M3DT4H5M6S", "P3W", "P1DT2H"}, {"P", "PT", "P1S", "1D"}},
      {"uuid", {"123e4567-e89b-12d3-a456-426614174000"}, {"123e4567e89b12d3a456426614174000"}},
      {"email",
       {"a@b.org", "first.last+tag@mail.example.com"},
       {"a@b", "@b.org", "a b@c.org", "a.@b.org"}},
      {"hostname", {"localhost", "www.example.com", "a-b.c"}, {"-a", "a-", "a..b", "a_b"}},
      {"ipv4",
       {"0.0.0.0", "255.255.255.255", "192.168.1.10"},
       {"256.1.1.1", "1.1.1", "01.1.1.1", "1.1.1.1.1"}},
      {"ipv6",
       {"1:2:3:4:5:6:7:8", "::", "::1", "fe80::", "2001:db8::ff00"},
       {"1:2:3", "1::2::3", "12345::"}},
      {"uri",
       {"https://example.com/a/b?x=1#top", "http://localhost:8080"},
       {"example.com", "https://"}},
      {"json-pointer", {"", "/a/0"}, {"a", "a/b"}},
      {"byte", {"", "aGVsbG8=", "aGVsbG8h", "aA=="}, {"a", "aG=", "a==="}},
  };
  for (const Case& c : cases) {
    const std::string schema = cat(R"({"type":"string","format":")", c.format, R"("})");
    for (const bool expected : {true, false}) {
      for (const std::string& text : expected ? c.yes : c.no) {
        EXPECT_EQ(schema_verdict(schema, cat("\"", text, "\"")) == "match", expected)
            << c.format << ": " << text;
      }
    }
  }
}

TEST(JsonSchemaString, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(schema_error(R"({"format":"isbn"})"),
            "JSON schema, #: found format \"isbn\", expected one of date, time, date-time, "
            "duration, uuid, "
            "email, hostname, ipv4, ipv6, uri, json-pointer, byte; remove it or use a pattern");
  EXPECT_EQ(schema_error(R"({"format":3})"), "JSON schema, #: format must be a string");
  EXPECT_EQ(schema_error(R"({"pattern":["a"]})"), "JSON schema, #: pattern must be a string");
  EXPECT_EQ(schema_error(R"({"minLength":3,"maxLength":2})"),
            "JSON schema, #: found minLength 3 above maxLength 2");
  EXPECT_EQ(schema_error(R"({"minLength":-1})"),
            "JSON schema, #: found minLength -1, expected an integer from 0 to 65536");
  EXPECT_EQ(schema_error(R"({"maxLength":"5"})"),
            "JSON schema, #: found maxLength \"5\", expected an integer from 0 to 65536");
  EXPECT_EQ(schema_error(R"({"maxLength":2.5})"),
            "JSON schema, #: found maxLength 2.5, expected an integer from 0 to 65536");
}

}  // namespace
}  // namespace sluice::text
