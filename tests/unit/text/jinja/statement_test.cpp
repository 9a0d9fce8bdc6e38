// Statements: loops, conditions, assignments, macros. Every expected output was checked against
// Jinja2 3.1, but for the macro that outlives its loop: there Jinja2 mixes up the two loops.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaFor, GoesOverListsKeysAndCharacters) {
  expect_renders({{"{% for x in [1, 'a'] %}{{ x }};{% endfor %}", "1;a;"},
                  {"{% for x in 1, 2 %}{{ x }}{% endfor %}", "12"},
                  {"{% for k in {'a': 1, 'b': 2} %}{{ k }}{% endfor %}", "ab"},
                  {"{% for c in 'aä你' %}[{{ c }}]{% endfor %}", "[a][ä][你]"},
                  {"{% for x in nosuch %}x{% else %}none{% endfor %}", "none"}});
  expect_fails(
      Errc::bad_request,
      {{"a\n{% for x in 5 %}{% endfor %}",
        "line 2, column 4: statement 'for' wants a list, dictionary or string, not integer"},
       {"{% for x in none %}{% endfor %}", "not none"}});
}

TEST(JinjaFor, UnpacksSeveralNames) {
  expect_renders({{"{% for k, v in {'a': 1}.items() %}{{ k }}={{ v }}{% endfor %}", "a=1"},
                  {"{% for a, (b, c) in [(1, (2, 3))] %}{{ a }}{{ b }}{{ c }}{% endfor %}", "123"},
                  {"{% for (a, b) in ['xy'] %}{{ b }}{{ a }}{% endfor %}", "yx"}});
  expect_fails(Errc::bad_request,
               {{"{% for a, b in [(1, 2, 3)] %}{% endfor %}", "found 3 values for 2 names"},
                {"{% for a, b in [5] %}{% endfor %}", "assigning to several names wants a list"}});
}

TEST(JinjaFor, TellsWhereTheLoopIs) {
  expect_renders(
      {{"{% for x in 'abc' %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}"
        "{{ loop.revindex0 }}{{ loop.length }} {% endfor %}",
        "10323 21213 32103 "},
       {"{% for x in 'abc' %}{{ loop.first }}/{{ loop.last }} {% endfor %}",
        "True/False False/False False/True "},
       {"{% for x in 'abc' %}{{ loop.previtem }}<{{ loop.nextitem }} {% endfor %}", "<b a<c b< "},
       {"{% for x in 'abc' %}{{ loop.cycle('x', 'y') }}{% endfor %}", "xyx"},
       {"{% for x in [1, 1, 2] %}{{ loop.changed(x) }} {% endfor %}", "True False True "},
       {"{% for x in [1] %}{% for y in [2] %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}"
        "{% endfor %}",
        "10"},
       {"{% for x in 'ab' %}{% for y in 'c' %}{{ loop.index }}{% endfor %}{{ loop.index }}{% "
        "endfor %}",
        "1112"},
       {"{% for x in [] %}{% else %}{{ loop is defined }}{% endfor %}", "False"}});
}

TEST(JinjaFor, CountsOnlyWhatTheConditionLetsThrough) {
  expect_renders(
      {{"{% for x in [1, 2, 3, 4] if x % 2 == 0 %}{{ loop.index }}/{{ loop.length }}:{{ x }} "
        "{% endfor %}",
        "1/2:2 2/2:4 "},
       {"{% for x in [1] if x > 1 %}x{% else %}none{% endfor %}", "none"},
       {"{% for k, v in {'a': 1, 'b': 0}.items() if v %}{{ k }}{% endfor %}", "a"}});
}

TEST(JinjaFor, BreaksAndContinues) {
  expect_renders(
      {{"{% for x in [1, 2, 3] %}{% if x == 2 %}{% break %}{% endif %}{{ x }}{% endfor %}", "1"},
       {"{% for x in [1, 2, 3] %}{% if x == 2 %}{% continue %}{% endif %}{{ x }}{% endfor %}",
        "13"},
       {"{% for x in 'ab' %}{% for y in 'cd' %}{% break %}{% endfor %}{{ x }}{% endfor %}", "ab"},
       {"{% for x in 'ab' %}{% for y in [] %}{% else %}{% break %}{% endfor %}{{ x }}{% endfor %}",
        ""}});
}

TEST(JinjaFor, TakesElseWhereNoRoundCameToItsEnd) {
  expect_renders(
      {{"{% for x in [1] %}{% break %}{% else %}none{{ x }}{% endfor %}", "none"},
       {"{% for x in [1, 2] %}{{ x }}{% continue %}{% else %}none{% endfor %}", "12none"},
       {"{% for x in [1, 2] %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% else %}none{% endfor "
        "%}",
        "12"}});
}

TEST(JinjaFor, CallsItselfWhenRecursive) {
  const Json variables = Json::parse(
      R"({"tree": [{"n": 1, "c": [{"n": 2, "c": [{"n": 3, "c": []}]}]}, {"n": 4, "c": []}]})");
  expect_renders({{"{% for x in tree recursive %}{{ x.n }}@{{ loop.depth }}"
                   "{% if x.c %}({{ loop(x.c) }}){% endif %}{% endfor %}",
                   "1@1(2@2(3@3))4@1"}},
                 variables);
  expect_fails(Errc::bad_request, {{"{% for x in [1] %}{{ loop([2]) }}{% endfor %}",
                                    "object is called, but it is not a function"}});
}

TEST(JinjaFor, SeesWhatItsBodyAppends) {
  expect_renders(
      {{"{% set l = [1] %}{% for x in l %}{% if x < 4 %}{% set _ = l.append(x + 1) %}"
        "{% endif %}{{ x }}{% endfor %}",
        "1234"}});
}

TEST(JinjaFor, KeepsItsNamesToItself) {
  expect_renders(
      {{"{% set x = 9 %}{% for i in [1, 2] %}{{ x }}{% set x = i %}{% endfor %}{{ x }}", "999"},
       {"{% for i in [1, 2] %}{{ y }}{% set y = i %}{% endfor %}{{ i }}{{ y }}", ""}});
}

TEST(JinjaIf, TakesTheFirstTrueBranch) {
  expect_renders(
      {{"{% for i in range(4) %}{% if i == 0 %}a{% elif i == 1 %}b{% elif i == 2 %}c{% else %}d"
        "{% endif %}{% endfor %}",
        "abcd"},
       {"{% if 0 %}a{% endif %}{% if '' or [] or {} or none or 0.0 or x %}b{% endif %}", ""},
       {"{% if 1, 0 %}a{% endif %}", "a"},
       {"{% if true %}{% set x = 1 %}{% endif %}{{ x }}", "1"}});
}

TEST(JinjaSet, AssignsNamesTuplesAndBlocks) {
  expect_renders({{"{% set x = 1 %}{% set x = x + 1 %}{{ x }}", "2"},
                  {"{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"},
                  {"{% set a = 1, 2 %}{{ a }}", "(1, 2)"},
                  {"{% set (a, b), c = (1, 2), 3 %}{{ a }}{{ b }}{{ c }}", "123"},
                  {"{% set x %}a{{ 1 }}{% endset %}[{{ x }}]", "[a1]"},
                  {"{% set x | upper | replace('A', 'b') %}aa{% endset %}{{ x }}", "bb"},
                  {"{% set x %}{% set y = 1 %}{% endset %}[{{ y }}]", "[]"}});
}

TEST(JinjaSet, ChangesAttributesOfNamespacesAlone) {
  expect_renders(
      {{"{% set ns = namespace(a=1) %}{% for i in [1, 2] %}{% set ns.a = ns.a + i %}{% endfor %}"
        "{% set ns.b = 'x' %}{{ ns.a }}{{ ns.b }}{{ ns.c }}",
        "4x"},
       {"{% set ns = namespace() %}{% set ns.x %}block{% endset %}{{ ns.x }}", "block"},
       {"{% set ns = namespace({'a': 1}) %}{% set ns.b, c = 2, 3 %}{{ ns }}{{ c }}",
        "<Namespace {'a': 1, 'b': 2}>3"}});
  expect_fails(Errc::bad_request, {{"{% set d = {} %}{% set d.a = 1 %}",
                                    "before '.a =' must be a namespace(), not dictionary"},
                                   {"{% set nosuch.a = 1 %}", "'nosuch' is undefined"}});
}

TEST(JinjaWith, LimitsNamesToItsBody) {
  expect_renders({{"{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}[{{ a }}]", "12[]"},
                  {"{% set a = 5 %}{% with a = 1, b = a %}{{ b }}{% endwith %}{{ a }}", "55"},
                  {"{% with %}{% set x = 1 %}{% endwith %}[{{ x }}]", "[]"}});
}

TEST(JinjaMacro, BindsArgumentsByPositionNameAndDefault) {
  expect_renders(
      {{"{% macro m(a, b='B') %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }} {{ m(1, 2) }} {{ m(b=3) }}",
        "1B 12 3"},
       {"{% macro m(a, b=a ~ '!') %}{{ b }}{% endmacro %}{{ m('x') }}", "x!"},
       {"{% macro m(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ m(1, 2, 3, k=4) }}",
        "(2, 3){'k': 4}"},
       {"{% macro m(a, b) %}{{ a }}{{ b }}{% endmacro %}{{ m(*[1], **{'b': 2}) }}", "12"},
       {"{% macro m(a) %}[{{ a is defined }}]{% endmacro %}{{ m() }}", "[False]"},
       {"{% macro m() %}x{% endmacro %}{{ m }} {{ m.name }} {{ m() | upper }}",
        "<Macro 'm'> m X"}});
  expect_fails(
      Errc::bad_request,
      {{"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}",
        "'m' takes not more than 1 arguments, found 2"},
       {"{% macro m(a) %}{% endmacro %}{{ m(b=2) }}", "macro 'm' has no parameter 'b'"},
       {"{% macro m(a) %}{% endmacro %}{{ m(1, a=2) }}", "macro 'm' is given two values for 'a'"}});
}

TEST(JinjaMacro, SeesTheNamesAroundItsDefinition) {
  expect_renders(
      {{"{% macro m() %}[{{ i }}]{% endmacro %}{% for i in [1] %}{{ m() }}{% endfor %}", "[]"},
       {"{% macro m() %}{{ later }}{% endmacro %}{% set later = 'L' %}{{ m() }}", "L"},
       {"{% for i in [1, 2] %}{% macro m() %}{{ i }}{{ y }}{% endmacro %}{% set y = 5 %}{{ m() }}"
        "{% endfor %}",
        "1525"},
       {"{% macro m() %}{% set x = 1 %}{% endmacro %}{{ m() }}[{{ x }}]", "[]"}});
}

// The scope of a loop is used again, unless a macro still looks at it.
TEST(JinjaMacro, KeepsItsNamesAfterTheirLoopHasEnded) {
  expect_renders(
      {{"{% set ns = namespace() %}{% for i in [7] %}{% macro m() %}{{ i }}{% endmacro %}"
        "{% set ns.m = m %}{% endfor %}{% for i in [1] %}{{ ns.m() }}{% endfor %}",
        "7"},
       {"{% set ns = namespace() %}{% for i in [7] recursive %}{% set ns.l = loop %}"
        "{{ i }}{% endfor %}{% for j in [1] %}{{ ns.l([2]) }}{% endfor %}",
        "72"}});
}

TEST(JinjaMacro, CallsItself) {
  expect_renders(
      {{"{% macro f(n) %}{{ n }}{{ f(n - 1) if n > 0 }}{% endmacro %}{{ f(5) }}", "543210"}});
}

TEST(JinjaCall, GivesABodyToAMacro) {
  expect_renders(
      {{"{% macro m() %}[{{ caller() }}]{% endmacro %}{% call m() %}a{{ 1 }}{% endcall %}", "[a1]"},
       {"{% macro m(x) %}{{ caller(x, 2) }}{% endmacro %}{% call(a, b) m(1) %}{{ a }}{{ b }}"
        "{% endcall %}",
        "12"},
       {"{% macro m() %}{{ caller is defined }}{% endmacro %}{{ m() }}{% call m() %}{% endcall %}",
        "FalseTrue"}});
  expect_fails(Errc::bad_request, {{"{% macro m() %}{% endmacro %}{% call m() %}{% endcall %}",
                                    "macro 'm' has no parameter 'caller'"}});
}

TEST(JinjaFilterBlock, SendsItsBodyThroughFilters) {
  expect_renders(
      {{"{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB"},
       {"{% filter trim | replace('a', 'b') %} a {% endfilter %}", "b"},
       {"{% filter upper %}a{% filter trim %} b {% endfilter %}c{% endfilter %}", "ABC"}});
}

TEST(JinjaGeneration, PrintsItsBodyAsIfItWereNotThere) {
  expect_renders({{"a{% generation %}b{% set x = 1 %}{% endgeneration %}c{{ x }}", "abc1"},
                  {"{%- generation -%} b {%- endgeneration -%} c", "bc"}});
}

}  // namespace
}  // namespace sluice::text::jinja
