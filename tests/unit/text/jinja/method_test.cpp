// Every method of strings, lists, tuples and dictionaries, and the global functions. Every
// expected output was checked against Jinja2 3.1 on Python 3.11.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaStringMethod, Strips) {
  expect_renders(
      {{"[{{ ' \ta\n'.strip() }}] [{{ ' a '.lstrip() }}] [{{ ' a '.rstrip() }}]", "[a] [a ] [ a]"},
       {"{{ 'xyaxy'.strip('yx') }} {{ 'xxa'.lstrip('x') }} {{ 'axx'.rstrip('x') }}", "a a a"},
       {"{{ 'ääbä'.strip('ä') }} [{{ '\u2003a\u00a0'.strip() }}]", "b [a]"},
       {"{{ 'ab'.removeprefix('a') }} {{ 'ab'.removesuffix('b') }} {{ 'ab'.removeprefix('b') }}",
        "b a ab"}});
}

TEST(JinjaStringMethod, Splits) {
  expect_renders(
      {{"{{ ' a  b '.split() }} {{ 'a,,b'.split(',') }} {{ ''.split() }} {{ ''.split(',') }}",
        "['a', 'b'] ['a', '', 'b'] [] ['']"},
       {"{{ 'a b c'.split(' ', 1) }} {{ ' a b c '.split(none, 1) }} {{ 'a,b'.split(',', 0) }}",
        "['a', 'b c'] ['a', 'b c '] ['a,b']"},
       {"{{ 'a,b,c'.rsplit(',', 1) }} {{ ' a b c '.rsplit(none, 1) }} {{ 'äxäxä'.rsplit('x', 1) }}",
        "['a,b', 'c'] [' a b', 'c'] ['äxä', 'ä']"},
       {"{{ 'aaa'.rsplit('aa') }} {{ 'a b'.rsplit() }}", "['a', ''] ['a', 'b']"},
       {"{{ 'a\nb\r\nc\u2028d'.splitlines() }} {{ 'a\n'.splitlines(true) }}",
        R"(['a', 'b', 'c', 'd'] ['a\n'])"},
       {"{{ 'k=v=w'.partition('=') }} {{ 'k=v=w'.rpartition('=') }}",
        "('k', '=', 'v=w') ('k=v', '=', 'w')"},
       {"{{ 'k'.partition('=') }} {{ 'k'.rpartition('=') }}", "('k', '', '') ('', '', 'k')"}});
  expect_fails(Errc::bad_request, {{"{{ 'a'.split('') }}", "'sep' must not be empty"},
                                   {"{{ 'a'.split(1) }}", "split: 'sep' must be a string"}});
}

TEST(JinjaStringMethod, Searches) {
  expect_renders(
      {{"{{ 'abcb'.find('b') }} {{ 'abcb'.rfind('b') }} {{ 'a'.find('x') }} {{ 'äb'.find('b') }}",
        "1 3 -1 1"},
       {"{{ 'abcb'.find('b', 2) }} {{ 'abcb'.find('b', 0, 1) }} {{ 'abc'.find('c', -1) }} {{ "
        "'a'.find('', 5) }}",
        "3 -1 2 -1"},
       {"{{ 'aaa'.count('aa') }} {{ 'abc'.count('') }} {{ 'äxäx'.count('x', 2) }}", "1 4 1"},
       {"{{ 'abc'.index('c') }} {{ 'abab'.rindex('ab') }}", "2 2"},
       {"{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'a'.startswith('') }}",
        "True True True"}});
  expect_fails(Errc::bad_request, {{"{{ 'a'.index('x') }}", "index: the string does not occur"},
                                   {"{{ 'a'.startswith(1) }}", "must be a string, not integer"}});
}

TEST(JinjaStringMethod, ChangesAndJoins) {
  expect_renders(
      {{"{{ 'aß'.upper() }} {{ 'ÄB'.lower() }} {{ \"it's a1b\".title() }} {{ 'aB'.capitalize() }}",
        "ASS äb It'S A1B Ab"},
       {"{{ 'aaa'.replace('a', 'b', 2) }} {{ 'ab'.replace('', '-') }} {{ 'ab'.replace('', '-', 1) "
        "}}",
        "bba -a-b- -ab"},
       {"{{ ', '.join(['a', 'b']) }} {{ '-'.join('ab') }} {{ ''.join([]) }}|", "a, b a-b |"},
       {"[{{ 'a'.ljust(3) }}] [{{ 'a'.rjust(3, '.') }}] [{{ 'a'.center(4) }}]",
        "[a  ] [..a] [ a  ]"},
       {"{{ 'a'.center(4, '-') }} {{ 'ä'.center(5, '·') }} {{ 'ab'.rjust(-9223372036854775807 - 1) "
        "}}",
        "-a-- ··ä·· ab"},
       {"{{ 'aB'.casefold() }}", "ab"}});
  expect_fails(Errc::bad_request,
               {{"{{ ','.join([1]) }}", "join: each element must be a string, not integer"},
                {"{{ 'a'.ljust(3, 'xy') }}", "'fillchar' must be one character"},
                {"{{ 'a'.center(3, '') }}", "'fillchar' must be one character"}});
}

TEST(JinjaStringMethod, AsksAboutCharacters) {
  expect_renders(
      {{"{{ '12'.isdigit() }} {{ '1a'.isdigit() }} {{ ''.isdigit() }} {{ '٣'.isdigit() }}",
        "True False False True"},
       {"{{ 'aé你'.isalpha() }} {{ 'a1'.isalpha() }} {{ 'a1'.isalnum() }} {{ 'a-'.isalnum() }}",
        "True False True False"},
       {"{{ ' \t'.isspace() }} {{ ''.isspace() }} {{ 'AB1'.isupper() }} {{ 'a1'.islower() }} {{ "
        "'1'.isupper() }}",
        "True False True True False"}});
}

TEST(JinjaStringMethod, Formats) {
  expect_renders(
      {{"{{ '{} {}'.format(1, 'a') }} {{ '{1}{0}'.format(1, 2) }} {{ '{a}'.format(a=1) }} {{ "
        "'{{}}'.format() }}",
        "1 a 21 1 {}"},
       {"{{ '{:>4}|{:<4}|{:^4}|{:*^5}'.format('a', 'b', 'c', 'd') }}", "   a|b   | c  |**d**"},
       {"{{ '{:04d}|{:+d}|{:,}|{:x}|{:#X}|{:b}|{:o}'.format(42, 5, 1234567, 255, 255, 5, 8) }}",
        "0042|+5|1,234,567|ff|0XFF|101|10"},
       {"{{ '{:.2f}|{:8.3f}|{:08.2f}|{:.1%}|{:e}|{:g}'.format(1.005, 3.14159, -1.5, 0.25, "
        "12345.678, 0.0001) }}",
        "1.00|   3.142|-0001.50|25.0%|1.234568e+04|0.0001"},
       {"{{ '{!r} {!s} {:.2}'.format('a', 'b', 'cde') }} {{ '{}'.format(none) }}",
        "'a' b cd None"}});
  expect_fails(Errc::bad_request,
               {{"{{ '{}'.format() }}", "format: there is no value number 0"},
                {"{{ '{a}'.format(b=1) }}", "format: there is no value 'a'"},
                {"{{ '{'.format() }}", "format: '{' stands alone"},
                {"{{ '{:d}'.format('a') }}", "the value for 'd' must be a number, not string"},
                {"{{ '{:d}'.format(1.5) }}", "the value for 'd' must be an integer, not float"},
                {"{{ '{:y}'.format(1) }}", "the specification 'y' is not supported"},
                {"{{ '{a.b}'.format(a=1) }}", "there is no value 'a.b'"}});
}

TEST(JinjaPercent, Formats) {
  expect_renders(
      {{"{{ '%s and %s' % ('a', 1) }} {{ '%s' % 'x' }} {{ '%d%%' % 5 }} {{ '%(k)s' % {'k': 'v'} }}",
        "a and 1 x 5% v"},
       {"{{ '%5s|%-5s|%05d|%+d|% d|%x|%o' % ('a', 'b', 42, 1, 2, 255, 8) }}",
        "    a|b    |00042|+1| 2|ff|10"},
       {"{{ '%.3f|%8.2f|%e|%g|%i|%r' % (3.14159, 2.5, 1234.5, 0.5, 3.9, 'a') }}",
        "3.142|    2.50|1.234500e+03|0.5|3|'a'"},
       {"{{ 'a' % [1] }} {{ 'b' % {'k': 1} }} {{ '%s' % [1] }}", "a b [1]"}});
  expect_fails(Errc::bad_request, {{"{{ '%s %s' % ('a',) }}", "fewer values than places"},
                                   {"{{ '%s' % ('a', 'b') }}", "more values than places"},
                                   {"{{ 'a' % 1 }}", "more values than places"},
                                   {"{{ '%y' % 1 }}", "a letter of srdifegxo must follow '%'"},
                                   {"{{ '%' % 1 }}", "a letter of srdifegxo must follow '%'"},
                                   {"{{ '%(a)s' % 1 }}", "the values must be a dictionary"},
                                   {"{{ '%d' % 'a' }}", "must be a number, not string"}});
}

TEST(JinjaListMethod, ChangesTheListUnderEveryName) {
  expect_renders(
      {{"{% set l = [1] %}{% set m = l %}{{ l.append(2) }} {{ m }}", "None [1, 2]"},
       {"{% set l = [1] %}{% set _ = l.extend([2]) %}{% set _ = l.extend(l) %}{{ l }}",
        "[1, 2, 1, 2]"},
       {"{% set l = [1, 2, 3] %}{{ l.pop() }} {{ l.pop(0) }} {{ l }}", "3 1 [2]"},
       {"{% set l = [1] %}{% set _ = l.insert(0, 0) %}{% set _ = l.insert(99, 9) %}{% set _ = "
        "l.insert(-1, 8) %}{{ l }}",
        "[0, 1, 8, 9]"},
       {"{% set l = [1, 2, 1] %}{{ l.index(2) }} {{ l.count(1) }} {% set _ = l.remove(1) %}{{ l }}",
        "1 2 [2, 1]"},
       {"{% set l = [1, 2] %}{% set c = l.copy() %}{% set _ = l.reverse() %}{{ l }} {{ c }}{% set "
        "_ = l.clear() %} {{ l }}",
        "[2, 1] [1, 2] []"},
       {"{{ (1, 2, 1).count(1) }} {{ (1, 2).index(2) }} {{ (1,).append is defined }}",
        "2 1 False"}});
  expect_fails(Errc::bad_request,
               {{"{{ [].pop() }}", "pop: there is no such element, the list has 0"},
                {"{{ [1].index(2) }}", "index: the value is not in the list"},
                {"{{ [1].remove(2) }}", "remove: the value is not in the list"}});
}

TEST(JinjaDictMethod, ReadsAndChangesTheDictionary) {
  expect_renders(
      {{"{% set d = {'a': 1} %}{{ d.items() | list }} {{ d.keys() | list }} {{ d.values() | list "
        "}}",
        "[('a', 1)] ['a'] [1]"},
       {"{% set d = {'a': 1} %}{{ d.get('a') }} {{ d.get('b') }} {{ d.get('b', 2) }}", "1 None 2"},
       {"{% set d = {'a': 1} %}{% set _ = d.update({'b': 2}, c=3) %}{% set _ = d.update([('a', "
        "0)]) %}{{ d }}",
        "{'a': 0, 'b': 2, 'c': 3}"},
       {"{% set d = {'a': 1, 'b': 2} %}{{ d.pop('a') }} {{ d.pop('x', 9) }} {{ d }}",
        "1 9 {'b': 2}"},
       {"{% set d = {} %}{{ d.setdefault('a', 1) }} {{ d.setdefault('a', 2) }} {{ d }}",
        "1 1 {'a': 1}"},
       {"{% set d = {'a': 1} %}{% set c = d.copy() %}{% set _ = c.update(d) %}{% set _ = "
        "d.pop('a') %}{{ c }}{{ d }}",
        "{'a': 1}{}"}});
  expect_fails(Errc::bad_request,
               {{"{{ {}.pop('a') }}", "pop: there is no such key; give a default"},
                {"{{ {}.update([1]) }}", "update: each element must be a pair"},
                {"{{ {[]: 1} }}", "a dictionary key must be a string, number"},
                {"{{ {x: 1} }}", "'x' is undefined"}});
}

TEST(JinjaGlobal, MakesRangesDictionariesAndCycles) {
  expect_renders({{"{{ range(3) | list }} {{ range(1, 3) | list }} {{ range(5, 0, -2) | list }} {{ "
                   "range(0) | list }}",
                   "[0, 1, 2] [1, 2] [5, 3, 1] []"},
                  {"{{ range(9223372036854775806, 9223372036854775807, 5) | length }}", "1"},
                  {"{{ dict(a=1) }} {{ dict({'a': 1}, b=2) }} {{ dict([('k', 'v')]) }}",
                   "{'a': 1} {'a': 1, 'b': 2} {'k': 'v'}"},
                  {"{% set j = joiner('|') %}{{ j() }}{{ j() }}{{ j() }} {% set c = joiner() %}{{ "
                   "c() }}{{ c() }}",
                   "|| , "},
                  {"{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ "
                   "c.current }}{{ c.reset() }}{{ c.current }}",
                   "1212None1"}});
  expect_fails(Errc::bad_request,
               {{"{{ range(0, 1, 0) }}", "'step' must not be 0"},
                {"{{ range('a') }}", "the argument 'start' must be an integer, not string"},
                {"{{ cycler() }}", "nothing to cycle through"}});
}

}  // namespace
}  // namespace sluice::text::jinja
