// No template may hang, exhaust memory or overflow the stack: each limit, reached on every way
// there is to it, ends with an Error that names the limit. Most run with the default
// limits.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

constexpr std::string_view kValues = "values need more than the limit of";
constexpr std::string_view kSteps = "takes more than the limit of";
constexpr std::string_view kDepth = "nest deeper than the limit of";
constexpr std::string_view kOutput = "the output grows beyond the limit of";

// A fiftieth of the default, so that a debug build is done in no time.
Limits small() {
  Limits limits;
  limits.steps = 1'000'000;
  limits.output_bytes = 1 << 20;
  limits.value_bytes = 4 << 20;
  return limits;
}

void expect_reaches(std::string_view limit, std::initializer_list<std::string> templates,
                    const Limits& limits) {
  for (const std::string& text : templates) {
    const Failure failure = failure_of(text, Json::object(), limits);
    EXPECT_EQ(failure.code, Errc::bad_request) << text;
    EXPECT_NE(failure.text.find(limit), std::string::npos)
        << "template: " << text << "\n  expected: " << limit
        << "\n  got: " << failure.text.substr(0, 300);
    EXPECT_NE(failure.text.find("chat template, line 1, column "), std::string::npos)
        << failure.text;
  }
}

TEST(JinjaLimit, StopsHugeValuesBeforeTheyAreBuilt) {
  expect_reaches(
      kValues,
      {"{{ 'a' * 10 ** 9 }}", "{{ 'ab' * 9223372036854775807 }}", "{{ [0] * 10 ** 12 }}",
       "{{ range(10 ** 12) | length }}", "{{ 'a' | center(10 ** 9) }}", "{{ 'a'.ljust(10 ** 12) }}",
       "{{ '%1000000000d' % 1 }}", "{{ '{:>1000000000}'.format(1) }}", "{{ '%.999999999s' % 'a' }}",
       "{{ 'a' | indent(10 ** 9) }}", "{{ [1] | tojson(indent=10 ** 9) }}",
       "{{ [] | batch(10 ** 10, 0) | list }}{{ [1] | batch(10 ** 10, 0) | list }}",
       "{{ [1] | slice(10 ** 10) | list }}"},
      {});
}

// A template that does something to ns.s sixty times.
std::string sixty_times(std::string_view start, std::string_view next) {
  return cat("{% set ns = namespace(s=", start, ") %}{% for i in range(60) %}{% set ns.s = ", next,
             " %}{% endfor %}");
}

TEST(JinjaLimit, StopsValuesThatGrowByDoubling) {
  for (const auto& [start, next] : {std::pair{"'ab'", "ns.s + ns.s"},
                                    {"'ab'", "ns.s ~ ns.s"},
                                    {"[1]", "ns.s + ns.s"},
                                    {"(1,)", "ns.s * 2"},
                                    {"'aaaa'", "[ns.s, ns.s] | join(ns.s)"},
                                    {"'aaaa'", "'%s%s' % (ns.s, ns.s)"},
                                    {"'aaaa'", "'{0}{0}'.format(ns.s)"},
                                    {"'////'", "(ns.s | urlencode) ~ ns.s"},
                                    {"'<<<<'", "(ns.s | escape) ~ ns.s"},
                                    {"'\u00fc'", "(ns.s | upper) ~ ns.s"}}) {
    expect_reaches(kValues, {sixty_times(start, next)}, small());
  }
  // Many small pieces are many steps as well.
  for (const auto& [start, next] : {std::pair{"'aa'", "ns.s.replace('a', 'aa')"},
                                    {"'aa'", "ns.s | replace('', 'a')"},
                                    {"['a']", "(ns.s | map('upper') | list) + ns.s"}}) {
    expect_reaches("the limit of", {sixty_times(start, next)}, small());
  }
  expect_reaches(kValues,
                 {"{% set l = [1] %}{% for i in range(60) %}{% set _ = l.extend(l) %}{% endfor %}"},
                 small());
}

// `body` for every i below n.
std::string loop(std::string_view before, int n, std::string_view body) {
  return cat(before, "{% for i in range(", n, ") %}", body, "{% endfor %}");
}

TEST(JinjaLimit, StopsManySmallValues) {
  expect_reaches(kValues,
                 {loop("{% set l = [] %}", 100'000, "{% set _ = l.append([i]) %}"),
                  loop("{% set d = {} %}", 100'000, "{% set _ = d.update({i: i}) %}"),
                  loop("", 100'000, "{% set x = 'a' ~ i %}{% set y = {} %}"),
                  loop("", 100'000, "{% macro m() %}{% endmacro %}"),
                  "{{ ('a ' * 10 ** 6).split() | length }}",
                  "{{ ('a' * 10 ** 6) | list | length }}", "{{ ('[' * 10 ** 5) | from_json }}"},
                 small());
  expect_reaches("the limit of",
                 {"{% set l = [1] %}{% for i in l %}{% set _ = l.append(i) %}{% endfor %}"},
                 small());
}

TEST(JinjaLimit, StopsTemplatesThatTakeTooManySteps) {
  constexpr std::string_view kRange = "{% set r = range(2000) %}";
  constexpr std::string_view kText = "{% set s = 'a' * 10 ** 6 %}{% set t = 'a' * 10 ** 6 %}";
  constexpr std::string_view kAccents = "{% set s = 'é' * 10 ** 5 %}";
  constexpr std::string_view kLists = "{% set l = range(10 ** 4) %}{% set m = range(10 ** 4) %}";
  expect_reaches(
      kSteps,
      {loop(kRange, 2000, "{% for b in r %}{% endfor %}"),
       loop(kRange, 2000, "{% for b in r if false %}{% endfor %}"),
       loop(kText, 10'000, "{{ '' if 'b' in s }}"), loop(kText, 10'000, "{{ '' if s < t }}"),
       loop(kText, 10'000, "{{ '' if s == t }}"), loop(kText, 10'000, "{{ '' if s | length }}"),
       loop(kText, 10'000, "{{ '' if s.count('b') + s.rfind('b') }}"),
       loop(kText, 10'000, "{{ '' if s.startswith(t) }}"),
       loop(kText, 10'000, "{{ '' if s is lower }}"), loop(kAccents, 100'000, "{{ '' if s[-1] }}"),
       loop(kLists, 10'000, "{{ '' if -1 in l }}"), loop(kLists, 10'000, "{{ '' if l == m }}"),
       loop(kLists, 10'000, "{{ '' if l.index(9999) }}"),
       loop(kLists, 10'000, "{% set _ = m.insert(0, 1) %}{% set _ = m.pop(0) %}")},
      small());
}

// x contains itself twice, sixty times over: short to write, and without end to walk.
TEST(JinjaLimit, StopsWalksThroughValuesThatShareTheirParts) {
  constexpr std::string_view kTower =
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}"
      "{% set ns.y = [ns.y, ns.y] %}{% endfor %}";
  for (const auto& [walk, limit] : {std::pair{"{{ ns.x == ns.y }}", kSteps},
                                    {"{{ ns.x < ns.y }}", kSteps},
                                    {"{{ ns.x }}", kSteps},
                                    {"{{ ns.x | tojson }}", kSteps},
                                    {"{{ [ns.x, ns.y] | sort }}", kSteps}}) {
    expect_reaches(limit, {std::string(kTower) + walk}, small());
  }
}

TEST(JinjaLimit, StopsRecursion) {
  expect_reaches(
      kDepth,
      {"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
       "{% macro a() %}{{ b() }}{% endmacro %}{% macro b() %}{{ a() }}{% endmacro %}{{ a() }}",
       "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}{% macro "
       "n() %}{{ caller() }}"
       "{% call n() %}x{% endcall %}{% endmacro %}{% call n() %}y{% endcall %}",
       "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}",
       "{% macro m(a=m()) %}{% endmacro %}{{ m() }}",
       "{% set ns = namespace() %}{% macro m() %}{% for i in [1] %}{{ ns.f() }}{% endfor %}{% "
       "endmacro %}"
       "{% set ns.f = m %}{{ m() }}"},
      {});
}

TEST(JinjaLimit, StopsWalksThroughValuesThatNestTooDeep) {
  constexpr std::string_view kDeep =
      "{% set ns = namespace(x=[], y=[]) %}{% for i in range(5000) %}{% set ns.x = [ns.x] %}{% set "
      "ns.y = [ns.y] %}"
      "{% endfor %}";
  for (const char* walk :
       {"{{ ns.x }}", "{{ ns.x | tojson }}", "{{ ns.x == ns.y }}", "{{ ns.x < ns.y }}", "{{ ns }}",
        "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}",
        "{% set d = {} %}{% set _ = d.update(a=d) %}{{ d | tojson }}",
        "{% set a = [] %}{% set _ = a.append(a) %}{% set b = [] %}{% set _ = b.append(b) %}{{ a == "
        "b }}",
        "{% set n = namespace() %}{% set n.n = n %}{{ n }}"}) {
    expect_reaches(kDepth, {std::string(kDeep) + walk}, {});
  }
}

TEST(JinjaLimit, StopsOutput) {
  expect_reaches(kOutput,
                 {"{% for i in range(1000) %}{{ 'a' * 10000 }}{% endfor %}",
                  "{% set s = 'a' * 10000 %}{% for i in range(1000) %}{% set x %}{{ s }}{% endset "
                  "%}{% endfor %}",
                  "{% macro m() %}{{ 'a' * 10000 }}{% endmacro %}{% for i in range(1000) %}{% if "
                  "m() %}{% endif %}{% endfor %}"},
                 small());
}

TEST(JinjaLimit, LeavesRoomUpToTheLimit) {
  Limits limits;
  limits.output_bytes = 100;
  EXPECT_EQ(render("{{ 'a' * 100 }}", Json::object(), limits).size(), 100u);
  EXPECT_EQ(failure_of("{{ 'a' * 101 }}", Json::object(), limits).code, Errc::bad_request);
  limits = {};
  limits.depth = 100;
  EXPECT_EQ(render("{% macro m(n) %}{{ m(n - 1) if n }}{% endmacro %}{{ m(5) }}x", Json::object(),
                   limits),
            "x");
}

// Looking for a part that nearly matches everywhere is quadratic when done by trying each place:
// seven times 4 * 10^12 comparisons of bytes here, which the test's time limit would end.
TEST(JinjaLimit, SearchesInLinearTime) {
  EXPECT_EQ(render("{% set s = 'a' * 4000000 %}{% set p = 'a' * 2000000 ~ 'b' %}{% set q = 'b' ~ "
                   "'a' * 2000000 %}"
                   "{{ s.find(p) }} {{ s.rfind(q) }} {{ p in s }} {{ s.split(p) | length }} {{ "
                   "s.rsplit(q) | length }} "
                   "{{ s.replace(p, '') == s }} {{ s.count(p) }} {{ s.strip(p) }}|"),
            "-1 -1 False 1 1 True 0 |");
}

// One after the other would be 9 * 10^10 comparisons of keys.
TEST(JinjaLimit, FindsKeysWithoutLookingAtAll) {
  EXPECT_EQ(render("{% set d = {} %}{% for i in range(300000) %}{% set _ = d.update({'k' ~ i: i}) "
                   "%}{% endfor %}"
                   "{% set ns = namespace(n=0) %}{% for i in range(300000) %}{% set ns.n = ns.n + "
                   "d['k' ~ i] %}{% endfor %}"
                   "{{ ns.n }}"),
            "44999850000");
}

TEST(JinjaLimit, CutsLongMessages) {
  EXPECT_LT(failure_of("{{ raise_exception('a' * 1000000) }}").text.size(), 3000u);
  EXPECT_LT(failure_of("{{ " + std::string(100'000, 'x') + ".y }}").text.size(), 500u);
  EXPECT_LT(failure_of("{{ 1 | " + std::string(100'000, 'x') + " }}").text.size(), 500u);
  EXPECT_EQ(failure_of("{{ raise_exception('a\nb\tc') }}").text,
            "chat template, line 1, column 4: the template refuses: a\\nb?c");
}

}  // namespace
}  // namespace sluice::text::jinja
