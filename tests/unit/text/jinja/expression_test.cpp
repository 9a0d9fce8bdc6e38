// Operators, access and calls, with Python's meaning. Every expected output was checked against
// Jinja2 3.1; errors also stand where our integers end, at 64 bits.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaExpression, ComputesWithIntegers) {
  expect_renders({{"{{ 7 + 2 }} {{ 7 - 9 }} {{ 7 * 3 }} {{ 2 ** 10 }}", "9 -2 21 1024"},
                  {"{{ 7 // 2 }} {{ -7 // 2 }} {{ 7 // -2 }} {{ -7 // -2 }}", "3 -4 -4 3"},
                  {"{{ 7 % 3 }} {{ -7 % 3 }} {{ 7 % -3 }} {{ -7 % -3 }}", "1 2 -2 -1"},
                  {"{{ 7 / 2 }} {{ 4 / 2 }}", "3.5 2.0"},
                  {"{{ true + true }} {{ -true }} {{ +5 }} {{ - -5 }}", "2 -1 5 5"},
                  {"{{ 2 ** 3 ** 2 }} {{ -2 ** 2 }} {{ 2 ** -1 }}", "64 4 0.5"},
                  {"{{ (-1) ** 9223372036854775807 }} {{ 0 ** 0 }}", "-1 1"}});
}

TEST(JinjaExpression, ComputesWithFloats) {
  expect_renders({{"{{ 0.1 + 0.2 }} {{ 1.5 * 2 }} {{ 1 - 0.5 }}", "0.30000000000000004 3.0 0.5"},
                  {"{{ 7.5 // 2 }} {{ -7.5 // 2 }} {{ 7.5 % 2 }}", "3.0 -4.0 1.5"},
                  {"{{ -7.5 % 2 }} {{ -3 % 1.5 }}", "0.5 0.0"},
                  {"{{ 2 ** 0.5 }} {{ 1e308 * 10 }}", "1.4142135623730951 inf"}});
}

TEST(JinjaExpression, RefusesResultsThatDoNotExist) {
  expect_fails(Errc::bad_request,
               {{"{{ 1 // 0 }}", "line 1, column 6: operator //: division by zero"},
                {"{{ 1 / 0 }}", "operator /: division by zero"},
                {"{{ 1 % 0.0 }}", "operator %: division by zero"},
                {"{{ 0 ** -1 }}", "operator **: division by zero"},
                {"{{ 9223372036854775807 + 1 }}", "operator +: the result does not fit 64 bits"},
                {"{{ -9223372036854775807 - 2 }}", "operator -: the result does not fit 64 bits"},
                {"{{ 4611686018427387904 * 2 }}", "operator *: the result does not fit 64 bits"},
                {"{{ 10 ** 19 }}", "operator **: the result does not fit 64 bits"},
                {"{{ (-9223372036854775807 - 1) // -1 }}", "operator //: the result does not fit"},
                {"{{ 10.0 ** 400 }}", "operator **: the result is not a number"},
                {"{{ (-8) ** 0.5 }}", "operator **: the result is not a number"}});
}

TEST(JinjaExpression, JoinsAndRepeats) {
  expect_renders({{"{{ 'a' + 'b' }} {{ [1] + [2] }} {{ (1,) + (2,) }}", "ab [1, 2] (1, 2)"},
                  {"{{ 'ab' * 3 }} {{ 2 * 'ab' }} {{ 'a' * -1 }}|", "ababab abab |"},
                  {"{{ [0] * 3 }} {{ 2 * (1, 2) }}", "[0, 0, 0] (1, 2, 1, 2)"},
                  {"{{ 'a' ~ 1 ~ 2.0 ~ none ~ true ~ [1] ~ x }}", "a12.0NoneTrue[1]"},
                  {"{{ 1 ~ 2 }} {{ 1 ~ 2 * 3 }}", "12 16"}});
}

TEST(JinjaExpression, RefusesOperandsThatDoNotFit) {
  expect_fails(Errc::bad_request,
               {{"{{ 'a' + 1 }}", "operator + cannot be applied to string and integer; ~ joins"},
                {"{{ none + 1 }}", "operator + cannot be applied to none and integer"},
                {"{{ [1] + (2,) }}", "operator + cannot be applied to list and tuple"},
                {"{{ {} * 2 }}", "operator * cannot be applied to dictionary and integer"},
                {"{{ 'a' - 'b' }}", "operator - cannot be applied to string and string"},
                {"{{ -'a' }}", "the operand of a sign must be a number, not string"},
                {"{{ x + 1 }}", "'x' is undefined"},
                {"{{ 1 - {}.a }}", "there is no attribute or key 'a'"}});
}

TEST(JinjaExpression, ComparesNumbersExactly) {
  expect_renders({{"{{ 1 == 1.0 }} {{ true == 1 }} {{ 1 != 2 }}", "True True True"},
                  {"{{ 9007199254740993 == 9007199254740992.0 }}", "False"},
                  {"{{ 9007199254740993 > 9007199254740992.0 }}", "True"},
                  {"{{ 1 < 1.5 }} {{ 2 >= 2.0 }} {{ -1 < -0.5 }}", "True True True"},
                  {"{{ 1 < 1e300 }} {{ 1 > -1e300 }}", "True True"}});
}

TEST(JinjaExpression, ComparesStringsAndContainers) {
  expect_renders(
      {{"{{ 'a' < 'b' }} {{ 'a' < 'B' }} {{ 'é' > 'z' }}", "True False True"},
       {"{{ [1, 2] < [1, 3] }} {{ [1] < [1, 0] }} {{ (2,) > (1, 9) }}", "True True True"},
       {"{{ [1, [2]] == [1, [2]] }} {{ [1] == (1,) }}", "True False"},
       {"{{ {'a': 1, 'b': 2} == {'b': 2, 'a': 1} }} {{ {} == {'a': 1} }}", "True False"},
       {"{{ '1' == 1 }} {{ none == none }} {{ none == false }}", "False True False"},
       {"{{ x == y }} {{ x == none }}", "True False"}});
  expect_fails(Errc::bad_request, {{"{{ 1 < 'a' }}", "no order between integer and string"},
                                   {"{{ {} < {} }}", "no order between dictionary and dictionary"},
                                   {"{{ none > 1 }}", "no order between none and integer"},
                                   {"{{ x < 1 }}", "'x' is undefined"}});
}

TEST(JinjaExpression, ChainsComparisons) {
  expect_renders({{"{{ 1 < 2 < 3 }} {{ 1 < 3 < 2 }} {{ 3 > 2 == 2 }}", "True False True"},
                  {"{{ 1 < 2 in [2] }} {{ 1 == 1.0 == true }}", "True True"},
                  {"{{ 2 < 1 < nosuch.attribute }}", "False"}});
}

TEST(JinjaExpression, FindsMembers) {
  expect_renders({{"{{ 'b' in 'abc' }} {{ '' in 'a' }} {{ 'x' not in 'abc' }}", "True True True"},
                  {"{{ 1 in [1.0] }} {{ 2 in (1, 2) }} {{ [1] in [[1]] }}", "True True True"},
                  {"{{ 'a' in {'a': 1} }} {{ 1 in {'a': 1} }}", "True False"},
                  {"{{ 1 in x }}", "False"}});
  expect_fails(Errc::bad_request,
               {{"{{ 1 in 'a' }}", "what is looked for in a string must be a string, not integer"},
                {"{{ 1 in 5 }}", "the right side of 'in' must be a list, dictionary or string"},
                {"{{ [] in {} }}", "what is looked for in a dictionary must be a possible key"}});
}

TEST(JinjaExpression, GivesOperandsOfAndAndOr) {
  expect_renders({{"{{ 0 or 'a' }} {{ 'a' or nosuch.x }} {{ '' and nosuch.x }}|", "a a |"},
                  {"{{ 1 and 2 }} {{ not 0 }} {{ not 'a' }}", "2 True False"},
                  {"{{ not 1 == 2 }} {{ 1 or 0 and 0 }}", "True 1"}});
}

TEST(JinjaExpression, ChoosesWithAnInlineIf) {
  expect_renders({{"{{ 'a' if 1 else 'b' }}{{ 'a' if 0 else 'b' }}{{ 'a' if 0 }}", "ab"},
                  {"{{ 1 if 0 else 2 if 0 else 3 }}", "3"},
                  {"{{ nosuch.x if 0 else 'b' }}", "b"},
                  {"{{ (x if 0) is defined }}", "False"},
                  {"{{ [1 if true else 2, 3] }}", "[1, 3]"}});
}

TEST(JinjaExpression, ReadsAttributesAndItems) {
  const Json variables = Json::parse(R"({"d": {"a": {"b": [1, 2]}, "items": "key"}, "s": "äbc"})");
  expect_renders({{"{{ d.a.b }} {{ d['a']['b'][1] }} {{ d.a['b'].0 }}", "[1, 2] 2 1"},
                  {"{{ d['items'] }} {{ d.items() | length }}", "key 2"},
                  {"{{ s[0] }} {{ s[-1] }} {{ [1, 2][-2] }} {{ (1, 2)[true] }}", "ä c 1 2"},
                  {"{{ {1: 'a', none: 'b', 2.0: 'c'}[1] }}", "a"},
                  {"{{ {1: 'a'}[1.0] }}{{ {1: 'a'}[true] }}", "aa"},
                  {"{{ 'a'['upper']() }}{{ {'k': 1}['get']('k') }}", "A1"}},
                 variables);
}

TEST(JinjaExpression, TakesTheAbsentForUndefined) {
  expect_renders({{"[{{ x }}][{{ {}.a }}][{{ [][0] }}][{{ 'a'[5] }}][{{ none.x }}]", "[][][][][]"},
                  {"{{ [x] }} {{ {}.a is undefined }} {{ x | length }}", "[Undefined] True 0"},
                  {"{% for a in x %}{% endfor %}{{ 'F' if not x }}", "F"},
                  {"{{ (5).nosuch }}{{ [1]['a'] }}{{ {}[[]] }}", ""}});
  expect_fails(Errc::bad_request,
               {{"{{ x.y }}", "line 1, column 6: 'x' is undefined; it is neither given nor set"},
                {"{{ x['y'] }}", "'x' is undefined"},
                {"{{ x[1:] }}", "'x' is undefined"},
                {"{{ {}.a.b }}", "there is no attribute or key 'a'"},
                {"{{ [1][5].a }}", "there is no such element"},
                {"{{ x() }}", "'x' is undefined"},
                {"{{ {}.a() }}", "there is no attribute or key 'a'"}});
}

TEST(JinjaExpression, Slices) {
  expect_renders(
      {{"{{ [0, 1, 2, 3][1:3] }} {{ [0, 1, 2][:-1] }} {{ [0, 1, 2][-2:] }}",
        "[1, 2] [0, 1] [1, 2]"},
       {"{{ [0, 1, 2][::-1] }} {{ [0, 1, 2, 3][::2] }} {{ [0, 1, 2][2:0:-1] }}",
        "[2, 1, 0] [0, 2] [2, 1]"},
       {"{{ [0, 1][5:] }} {{ [0, 1][-9:9] }} {{ (1, 2, 3)[1:] }}", "[] [0, 1] (2, 3)"},
       {"{{ 'abcd'[1:3] }} {{ 'äöü'[1:] }} {{ 'äöü'[::-1] }} {{ 'abc'[::2] }}", "bc öü üöä ac"},
       {"{{ 'abc'[-9223372036854775807:] }} {{ [1, 2][::9223372036854775807] }}", "abc [1]"},
       {"{{ [1, 2, 3][none:none:none] }} {{ [1, 2, 3][9:0:-2] }}", "[1, 2, 3] [3]"}});
  expect_fails(Errc::bad_request,
               {{"{{ [1][::0] }}", "the step of a slice must not be 0"},
                {"{{ [1]['a':] }}", "each part of a slice must be an integer, not string"},
                {"{{ {}[1:] }}", "what is sliced must be a string or list, not dictionary"}});
}

TEST(JinjaExpression, CallsWithAllKindsOfArguments) {
  expect_renders(
      {{"{{ dict(a=1, **{'b': 2}) }}", "{'a': 1, 'b': 2}"},
       {"{{ range(*[1, 4]) | list }}", "[1, 2, 3]"},
       {"{{ 'a,b'.split(sep=',') }} {{ 'a b'.split(maxsplit=1,) }}", "['a', 'b'] ['a', 'b']"}});
  expect_fails(Errc::bad_request,
               {{"{{ 'a'() }}", "string is called, but it is not a function"},
                {"{{ 'a'.upper(1) }}", "takes not more than 0 arguments, found 1"},
                {"{{ 'a'.split(x=1) }}", "split: does not take the argument 'x' here"},
                {"{{ 'a'.split(',', sep=',') }}", "split: does not take the argument 'sep' here"},
                {"{{ 'a'.replace('b') }}", "replace: the argument 'new' is missing"},
                {"{{ dict(**[1]) }}", "what follows '**' must be a dictionary, not list"},
                {"{{ dict(*5) }}", "'*' wants a list, dictionary or string, not integer"}});
}

}  // namespace
}  // namespace sluice::text::jinja
