// What the parser refuses, and that it says where and what. What it accepts, the tests of
// expressions and statements show.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaParser, NamesPlaceAndExpectationOfASyntaxError) {
  expect_fails(
      Errc::bad_file,
      {{"ab\n{{ 1 + }}", "chat template, line 2, column 8: found '}}', expected an expression"},
       {"{{ a b }}", "column 6: found 'b', expected '}}' after the expression"},
       {"{{ }}", "found '}}', expected an expression"},
       {"{{ a. }}", "the name of an attribute after '.'"},
       {"{{ a[] }}", "found ']', expected an index"},
       {"{{ a[1 2] }}", "expected ']' after an index"},
       {"{{ {'a' 1} }}", "found '1', expected ':' after a dictionary's key"},
       {"{{ [1 2] }}", "found '2', expected ']' at the end of a list"},
       {"{{ f(a b) }}", "expected ')' after the arguments"},
       {"{{ f(a=1, 2) }}", "an argument without a name follows one with a name"},
       {"{{ f(*a, *b) }}", "a second '*' in one call"},
       {"{{ a | }}", "expected the name of a filter"},
       {"{{ a is }}", "expected the name of a test"},
       {"{{ a is none is none }}", "a test cannot follow a test"},
       {"{% if %}", "found '%}', expected an expression"},
       {"{% if a b %}", "found 'b', expected '%}' at the end of 'if'"},
       {"{% for x of y %}", "found 'of', expected 'in' after the loop's variables"},
       {"{% for 1 in y %}", "found '1', expected the name of a variable"},
       {"{% set x 1 %}", "found '1', expected '=', '|' or '%}'"},
       {"{% set true = 1 %}", "'true' is a constant and cannot be set"},
       {"{% macro (a) %}", "found '(', expected the name of the macro"},
       {"{% macro m(a=1, b) %}", "a parameter without a default follows one with a default"},
       {"{% call x %}{% endcall %}", "statement 'call': a call of a macro must follow"},
       {"{% 'x' %}", "expected the name of a statement after '{%'"}});
}

TEST(JinjaParser, SaysWhichBlockIsNotClosedOrNotOpen) {
  expect_fails(Errc::bad_file,
               {{"{% if a %}x", "found the end of the template, expected '{% endif %}'"},
                {"{% for a in b %}x", "expected '{% endfor %}'"},
                {"{% set a %}x", "expected '{% endset %}'"},
                {"{% macro m() %}x", "expected '{% endmacro %}'"},
                {"{% if a %}{% endfor %}", "there is no statement 'endfor' that could begin here"},
                {"x{% endif %}", "there is no statement 'endif' that could begin here"},
                {"{% if a %}{% else %}{% elif b %}{% endif %}", "no statement 'elif'"},
                {"{% if a %}{% endif x %}", "found 'x', expected '%}' at the end of 'endif'"}});
}

TEST(JinjaParser, RefusesByNameWhatItDoesNotSupport) {
  expect_fails(Errc::bad_file,
               {{"{% include 'x' %}", "the statement 'include' is not supported"},
                {"{% import 'x' as y %}", "the statement 'import' is not supported"},
                {"{% extends 'x' %}", "the statement 'extends' is not supported"},
                {"{% block b %}{% endblock %}", "the statement 'block' is not supported"},
                {"{% autoescape true %}", "the statement 'autoescape' is not supported"},
                {"{% do x.y() %}", "the statement 'do' is not supported"},
                {"{% nosuch %}", "there is no statement 'nosuch'"},
                {"a\n  {{ 1 | nosuch }}", "line 2, column 10: there is no filter 'nosuch'"},
                {"{% if false %}{{ 1 | nosuch }}{% endif %}", "there is no filter 'nosuch'"},
                {"{{ 1 is nosuch }}", "there is no test 'nosuch'"},
                {"{% set x | nosuch %}{% endset %}", "there is no filter 'nosuch'"}});
}

TEST(JinjaParser, RefusesLoopControlOutsideOfALoop) {
  expect_fails(
      Errc::bad_file,
      {{"{% break %}", "statement 'break' outside of a loop"},
       {"{% if a %}{% continue %}{% endif %}", "statement 'continue' outside of a loop"},
       {"{% for x in y %}{% macro m() %}{% break %}{% endmacro %}{% endfor %}", "'break' outside"},
       {"{% for x in y %}{% else %}{% break %}{% endfor %}", "'break' outside"}});
}

std::string repeated(std::string_view text, size_t n) {
  std::string out;
  for (size_t i = 0; i < n; ++i) out += text;
  return out;
}

// Every way to nest, at a depth that would overflow any stack if it were followed.
TEST(JinjaParser, RefusesNestingBeyondTheLimit) {
  struct Nested {
    std::string_view begin, opened, middle, closed, end;
  };
  constexpr size_t kDeep = 50'000;
  for (const Nested& n : {Nested{"{{ ", "(", "1", ")", " }}"},
                          {"{{ ", "[", "1", "]", " }}"},
                          {"{{ ", "{1:", "1", "}", " }}"},
                          {"{{ ", "not ", "1", "", " }}"},
                          {"{{ ", "- ", "1", "", " }}"},
                          {"{{ ", "a[", "1", "]", " }}"},
                          {"{{ ", "a[1:", "1", "]", " }}"},
                          {"{{ ", "f(", "1", ")", " }}"},
                          {"{{ ", "1|d(", "1", ")", " }}"},
                          {"{{ ", "1 is eq(", "1", ")", " }}"},
                          {"{{ ", "1 if 1 else ", "1", "", " }}"},
                          {"{{ a", ".b", "", "", " }}"},
                          {"{{ a", "[0]", "", "", " }}"},
                          {"{{ a", "()", "", "", " }}"},
                          {"{{ a", "|trim", "", "", " }}"},
                          {"{{ 1", "+1", "", "", " }}"},
                          {"{{ 1", "*1", "", "", " }}"},
                          {"{{ 1", "**1", "", "", " }}"},
                          {"{{ 1", " and 1", "", "", " }}"},
                          {"{{ 1", " or 1", "", "", " }}"},
                          {"{{ 1", " if 1", "", "", " }}"},
                          {"", "{% if 1 %}", "", "", ""},
                          {"", "{% for a in b %}", "", "", ""},
                          {"", "{% set a %}", "", "", ""},
                          {"{% for ", "(", "a", ")", " in b %}{% endfor %}"}}) {
    const std::string text = std::string(n.begin) + repeated(n.opened, kDeep) +
                             std::string(n.middle) + repeated(n.closed, kDeep) + std::string(n.end);
    const Failure failure = failure_of(text);
    EXPECT_EQ(failure.code, Errc::bad_file) << n.opened;
    EXPECT_NE(failure.text.find("deeper than the limit of 200 levels"), std::string::npos)
        << n.opened << ": " << failure.text;
  }
}

TEST(JinjaParser, TakesLongListsAndChainsThatDoNotNest) {
  constexpr size_t kLong = 5000;
  EXPECT_EQ(render("{{ ''" + repeated(" ~ 'a'", kLong) + " }}"), repeated("a", kLong));
  EXPECT_EQ(render("{{ [" + repeated("1,", kLong) + "] | length }}"), "5000");
  EXPECT_EQ(render("{{ 1" + repeated(" == 1", kLong) + " }}"), "True");
  EXPECT_EQ(render("{% if 0 %}" + repeated("{% elif 0 %}", kLong) + "{% else %}a{% endif %}"), "a");
}

}  // namespace
}  // namespace sluice::text::jinja
