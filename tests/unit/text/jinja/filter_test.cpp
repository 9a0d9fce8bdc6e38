// Every filter. Every expected output was checked against Jinja2 3.1 (tojson: Python's json.dumps;
// from_json is not part of Jinja).
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaFilter, ChangesCase) {
  expect_renders({{"{{ 'aBß' | upper }} {{ 'AÖİ' | lower }} {{ 5 | upper }}", "ABSS aöi\u0307 5"},
                  {"{{ 'hELLO wORLD' | capitalize }} {{ 'éa' | capitalize }}", "Hello world Éa"},
                  {"{{ 'foo bar-baz (x) [y] a_b' | title }}", "Foo Bar-Baz (X) [Y] A_b"}});
}

TEST(JinjaFilter, TrimsReplacesAndIndents) {
  expect_renders(
      {{"[{{ ' \n a \u00a0' | trim }}] [{{ 'xxaxyx' | trim('x') }}]", "[a] [axy]"},
       {"{{ 'aXbX' | replace('X', '') }} {{ 'aXbX' | replace('X', 'y', 1) }}", "ab aybX"},
       {"{{ 'ab' | replace('', '-') }} {{ 112 | replace(1, 'x') }}", "-a-b- xx2"},
       {"{{ 'a\nb\n\nc' | indent(2) }}", "a\n  b\n\n  c"},
       {"{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}",
        "  a\n  b|a\n \n b"},
       {"{{ 'a\nb' | indent('> ') }}|{{ 'a\n' | indent }}|", "a\n> b|a\n|"},
       {"[{{ 'a' | center(4) }}] [{{ 'ab' | center(5) }}]", "[ a  ] [  ab ]"}});
}

TEST(JinjaFilter, EscapesAndFormats) {
  expect_renders(
      {{"{{ '<&>\"' | escape }} {{ \"'\" | e }} {{ '<' | safe }}", "&lt;&amp;&gt;&#34; &#39; <"},
       {"{{ 'a b/ü?&' | urlencode }} {{ {'a b': 'c d', 'e': 1} | urlencode }}",
        "a%20b/%C3%BC%3F%26 a+b=c+d&e=1"},
       {"{{ [('x', '/')] | urlencode }}", "x=%2F"},
       {"{{ '%s-%d' | format('a', 2) }} {{ '%(x)s' | format(x=1) }}", "a-2 1"},
       {"{{ 'one two-three, vier_5' | wordcount }} {{ 12 | string + '3' }}", "4 123"}});
}

TEST(JinjaFilter, WritesJsonAsPythonDoes) {
  expect_renders(
      {{"{{ {'a': [1, 2.0, true, none, 'x']} | tojson }}", R"({"a": [1, 2.0, true, null, "x"]})"},
       {R"({{ 'é<>&\'"\\/\n\t\x01\x7f' | tojson }})", "\"é<>&'\\\"\\\\/\\n\\t\\u0001\x7f\""},
       {"{{ 'é👋' | tojson(ensure_ascii=true) }}", R"("\u00e9\ud83d\udc4b")"},
       {"{{ {'b': [1], 'a': {}} | tojson(indent=2) }}",
        "{\n  \"b\": [\n    1\n  ],\n  \"a\": {}\n}"},
       {"{{ [1, 2] | tojson(indent='\t') }} {{ [] | tojson(indent=2) }}", "[\n\t1,\n\t2\n] []"},
       {"{{ {'b': 1, 'a': 2} | tojson(sort_keys=true, separators=(',', ':')) }}",
        R"({"a":2,"b":1})"},
       {"{{ {1: 2, none: 3, true: 4, 1.5: 5} | tojson }}", R"({"1": 4, "null": 3, "1.5": 5})"},
       {"{{ (1, 2) | tojson }} {{ 1e22 | tojson }} {{ (1e308 * 10) | tojson }}",
        "[1, 2] 1e+22 Infinity"}});
  expect_fails(Errc::bad_request,
               {{"{{ x | tojson }}", "'x' is undefined"},
                {"{{ range | tojson }}", "a function or object has no JSON form"},
                {"{{ 1 | tojson(indent=[]) }}", "an integer or a string"},
                {"{{ 1 | tojson(separators=',') }}", "a pair of strings"}});
}

TEST(JinjaFilter, ReadsJson) {
  expect_renders({{R"({{ ('{"a": [1, "é"]}' | from_json).a[1] }})", "é"}});
  expect_fails(Errc::bad_request, {{"{{ '{' | from_json }}", "'{' is not valid JSON"},
                                   {"{{ 1 | from_json }}", "must be a string, not integer"}});
}

TEST(JinjaFilter, MakesNumbers) {
  expect_renders(
      {{"{{ '42' | int }} {{ ' -7 ' | int }} {{ '1_000' | int }} {{ 3.9 | int }}", "42 -7 1000 3"},
       {"{{ 'x' | int }} {{ 'x' | int(7) }} {{ '1.9' | int }} {{ none | int(2) }}", "0 7 1 2"},
       {"{{ 'ff' | int(base=16) }} {{ '0xff' | int(0, 16) }} {{ '101' | int(base=2) }}",
        "255 255 5"},
       {"{{ '1.5' | float }} {{ 2 | float }} {{ 'x' | float }} {{ 'x' | float(1.5) }}",
        "1.5 2.0 0.0 1.5"},
       {"{{ -5 | abs }} {{ -1.5 | abs }} {{ true | int }}", "5 1.5 1"},
       {"{{ 2.5 | round }} {{ 3.5 | round }} {{ 2.675 | round(2) }} {{ 7 | round }}",
        "2.0 4.0 2.67 7"},
       {"{{ 1.21 | round(1, 'ceil') }} {{ 1.29 | round(1, 'floor') }}", "1.3 1.2"},
       {"{{ 1234.5 | round(-2) }} {{ 1250 | round(-2) }}", "1200.0 1200"}});
  expect_fails(Errc::bad_request,
               {{"{{ 1e300 | int }}", "the number does not fit 64 bits"},
                {"{{ x | int }}", "'x' is undefined"},
                {"{{ 'a' | abs }}", "filter 'abs': the value must be a number"},
                {"{{ '1' | int(base=99) }}", "'base' must be from 2 to 36"},
                {"{{ 1 | round(0, 'up') }}", "must be 'common', 'ceil' or 'floor'"}});
}

TEST(JinjaFilter, LooksAtElements) {
  expect_renders(
      {{"{{ 'aä' | length }} {{ [1] | count }} {{ {'a': 1} | length }}", "2 1 1"},
       {"{{ [1, 2] | first }} {{ 'ab' | last }} {{ {'k': 1} | first }}[{{ [] | first }}]",
        "1 b k[]"},
       {"{{ 'ab' | list }} {{ (1, 2) | list }} {{ {'k': 1} | list }}", "['a', 'b'] [1, 2] ['k']"},
       {"{{ {'a': 1} | items | list }} {{ x | items | list }}", "[('a', 1)] []"},
       {"{{ [1, 'a', none] | join }} {{ [1, 2] | join(', ') }} {{ 'ab' | join('-') }}",
        "1aNone 1, 2 a-b"},
       {"{{ [{'n': 1}, {'n': 2}] | join('+', attribute='n') }}", "1+2"},
       {"{{ 'abc' | reverse }} {{ [1, 2] | reverse | list }}", "cba [2, 1]"},
       {"{{ [1, 2.5] | sum }} {{ [{'n': 1}] | sum('n', 10) }} {{ [[1], [2]] | sum(start=[]) }}",
        "3.5 11 [1, 2]"}});
  expect_fails(Errc::bad_request, {{"{{ none | length }}", "none has no length"},
                                   {"{{ 5 | first }}", "filter 'first' wants a list"},
                                   {"{{ 'x' | items }}", "must be a dictionary, not string"},
                                   {"{{ ['a'] | sum }}", "operator + cannot be applied"}});
}

TEST(JinjaFilter, CutsIntoRowsAndColumns) {
  expect_renders({{"{{ [1, 2, 3] | batch(2) | list }} {{ [1, 2, 3] | batch(2, 0) | list }}",
                   "[[1, 2], [3]] [[1, 2], [3, 0]]"},
                  {"{{ [1, 2, 3, 4] | slice(3) | list }} {{ [1, 2, 3] | slice(2, 'x') | list }}",
                   "[[1, 2], [3], [4]] [[1, 2], [3, 'x']]"}});
  expect_fails(Errc::bad_request, {{"{{ [] | batch(0) }}", "'linecount' must be positive"},
                                   {"{{ [] | slice(0) }}", "'slices' must be positive"}});
}

TEST(JinjaFilter, FallsBackToADefault) {
  expect_renders(
      {{"{{ x | default('d') }} {{ none | default('d') }} {{ '' | default('d') }}|", "d None |"},
       {"{{ '' | d('d', true) }} {{ 0 | default(1, boolean=true) }} {{ x | d }}|", "d 1 |"}});
}

TEST(JinjaFilter, MapsAndSelects) {
  const Json variables = Json::parse(
      R"({"u": [{"n": "Ann", "a": 31, "t": {"k": 1}}, {"n": "Bob", "a": 25}, {"n": "Cy", "a": 0}]})");
  expect_renders(
      {{"{{ u | map(attribute='n') | join }} {{ u | map(attribute='t.k', default=0) | list }}",
        "AnnBobCy [1, 0, 0]"},
       {"{{ ['a', 'b'] | map('upper') | list }} {{ ['a'] | map('replace', 'a', 'b') | list }}",
        "['A', 'B'] ['b']"},
       {"{{ [[1, 2], [3]] | map('first') | list }} {{ [[1, 2]] | map(attribute=1) | list }}",
        "[1, 3] [2]"},
       {"{{ [0, 1, '', 'a'] | select | list }} {{ [1, 2, 3] | select('odd') | list }}",
        "[1, 'a'] [1, 3]"},
       {"{{ [1, 2, 3] | select('gt', 1) | list }} {{ [1, 2] | reject('==', 1) | list }}",
        "[2, 3] [2]"},
       {"{{ [none, 1] | reject('none') | list }} {{ [0, 1] | reject | list }}", "[1] [0]"},
       {"{{ u | selectattr('a') | map(attribute='n') | join }}", "AnnBob"},
       {"{{ u | selectattr('a', 'ge', 25) | list | length }} {{ u | selectattr('t', 'defined') | "
        "list | length }}",
        "2 1"},
       {"{{ u | rejectattr('a') | map(attribute='n') | join }}", "Cy"},
       {"{{ u | rejectattr('n', 'in', ['Ann', 'Cy']) | map(attribute='n') | join }}", "Bob"},
       {"{{ none | map('upper') | list }} {{ x | selectattr('a') | list }}", "[] []"}},
      variables);
  expect_fails(Errc::bad_request,
               {{"{{ [1] | map('nosuch') }}", "filter 'map': there is no filter 'nosuch'"},
                {"{{ [1] | select('nosuch') }}", "filter 'select': there is no test 'nosuch'"},
                {"{{ [1] | map }}", "filter 'map': the argument 'attribute' is missing"},
                {"{{ [1] | selectattr }}", "the argument 'attribute' is missing"}});
}

TEST(JinjaFilter, OrdersByKeys) {
  const Json variables =
      Json::parse(R"({"u": [{"n": "b", "a": 1}, {"n": "A", "a": 2}, {"n": "a", "a": 1}]})");
  expect_renders(
      {{"{{ [3, 1, 2] | sort }} {{ [3, 1, 2] | sort(reverse=true) }}", "[1, 2, 3] [3, 2, 1]"},
       {"{{ ['b', 'A', 'a'] | sort }} {{ ['b', 'A'] | sort(case_sensitive=true) }}",
        "['A', 'a', 'b'] ['A', 'b']"},
       {"{{ u | sort(attribute='a') | map(attribute='n') | join }}", "baA"},
       {"{{ u | sort(attribute='a,n') | map(attribute='n') | join }}", "abA"},
       {"{{ u | sort(true, attribute='a') | map(attribute='n') | join }}", "Aba"},
       {"{{ {'b': 1, 'A': 2} | dictsort }} {{ {'a': 2, 'b': 1} | dictsort(by='value') }}",
        "[('A', 2), ('b', 1)] [('b', 1), ('a', 2)]"},
       {"{{ {'a': 2, 'b': 1} | dictsort(false, 'key', true) }}", "[('b', 1), ('a', 2)]"},
       {"{{ [1, 1.0, 2] | unique | list }} {{ ['a', 'A'] | unique | list }}", "[1, 2] ['a']"},
       {"{{ ['a', 'A'] | unique(true) | list }} {{ u | unique(attribute='a') | map(attribute='n') "
        "| join }}",
        "['a', 'A'] bA"},
       {"{{ [2, 1, 3] | min }} {{ [2, 1, 3] | max }} {{ ['b', 'A'] | min }}[{{ [] | max }}]",
        "1 3 A[]"},
       {"{{ (u | max(attribute='a')).n }}", "A"},
       {"{% for g, m in u | groupby('a') %}{{ g }}:{{ m | map(attribute='n') | join }} {% endfor "
        "%}",
        "1:ba 2:A "},
       {"{% for g in u | groupby('n') %}{{ g.grouper }}{{ g.list | length }} {% endfor %}",
        "A2 b1 "},
       {"{{ [{'a': 1}, {}] | groupby('a', default=0) | map(attribute=0) | list }}", "[0, 1]"}},
      variables);
  expect_fails(Errc::bad_request,
               {{"{{ [1, 'a'] | sort }}", "no order between"},
                {"{{ {} | dictsort(by='x') }}", "'by' must be 'key' or 'value'"},
                {"{{ [[]] | unique }}", "a dictionary key must be a string, number"}});
}

}  // namespace
}  // namespace sluice::text::jinja
