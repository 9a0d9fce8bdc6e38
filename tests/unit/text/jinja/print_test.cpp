// Values as text: what Python's str() and repr() write, and dates.
// SPDX-License-Identifier: Apache-2.0
#include "text/jinja/values/print.h"

#include <gtest/gtest.h>

#include <limits>

#include "text/jinja/builtins/strftime.h"
#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

TEST(JinjaPrint, WritesFloatsAsPythonDoes) {
  struct Example {
    double value;
    std::string_view text;
  };
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const auto& [value, text] :
       {Example{0, "0.0"}, Example{-0.0, "-0.0"}, Example{1, "1.0"}, Example{0.1, "0.1"},
        Example{1e15, "1000000000000000.0"}, Example{1e16, "1e+16"},
        Example{123456789.125, "123456789.125"}, Example{0.0001, "0.0001"},
        Example{0.00001, "1e-05"}, Example{1.5e300, "1.5e+300"}, Example{5e-324, "5e-324"},
        Example{-2.5, "-2.5"}, Example{kInfinity, "inf"}, Example{-kInfinity, "-inf"},
        Example{std::numeric_limits<double>::quiet_NaN(), "nan"}}) {
    EXPECT_EQ(float_text(value), text);
  }
}

TEST(JinjaPrint, WritesConstantsAndContainers) {
  expect_renders(
      {{"{{ none }} {{ true }} {{ false }} {{ 1.0 }} {{ -3 }}", "None True False 1.0 -3"},
       {"{{ [] }} {{ {} }} {{ () }} {{ (1,) }} {{ [[1], {'a': (2, none)}] }}",
        "[] {} () (1,) [[1], {'a': (2, None)}]"},
       {"{{ {1: 'a', none: true} }}", "{1: 'a', None: True}"},
       {"{{ 'a' }} {{ ['a'] }} {{ x }}|", "a ['a'] |"}});
}

TEST(JinjaPrint, QuotesStringsInsideContainers) {
  expect_renders(
      {{R"({{ ["it's"] }} {{ ['say "x"'] }} {{ ['\'"'] }})", R"(["it's"] ['say "x"'] ['\'"'])"},
       {R"({{ ['a\n\t\r\\b\x00\x7f'] }})", R"(['a\n\t\r\\b\x00\x7f'])"},
       {"{{ ['é你👋'] }}", "['é你👋']"},
       {R"({{ ['\u00a0\u200b\u2028\U000e0001\u00ad'] }})",
        R"(['\xa0\u200b\u2028\U000e0001\xad'])"}});
}

TEST(JinjaPrint, DescribesFunctionsWithoutAddresses) {
  expect_renders({{"{{ range }} {{ 'a'.upper }} {% for x in [1] %}{{ loop }}{% endfor %}",
                   "<function range> <function upper> <LoopContext 1/1>"}});
}

std::string time_text(std::string_view format, int64_t seconds) {
  Runtime runtime{Limits()};
  TextBuilder out(runtime);
  format_time(out, format, std::chrono::local_seconds(std::chrono::seconds(seconds)));
  return std::string(out.view());
}

constexpr int64_t kFriday = 1741338304;  // 2025-03-07 09:05:04

TEST(JinjaStrftime, KnowsTheDirectives) {
  EXPECT_EQ(time_text("%Y-%m-%d %H:%M:%S", kFriday), "2025-03-07 09:05:04");
  EXPECT_EQ(time_text("%d %b %Y, %A %B %a", kFriday), "07 Mar 2025, Friday March Fri");
  EXPECT_EQ(time_text("%y %e %j %I %p %w %%", kFriday), "25  7 066 09 AM 5 %");
  EXPECT_EQ(time_text("%-d.%-m.%-H.%-j %F %T %D", kFriday),
            "7.3.9.66 2025-03-07 09:05:04 03/07/25");
  EXPECT_EQ(time_text("ü%Yü", kFriday), "ü2025ü");
}

TEST(JinjaStrftime, KnowsNoonMidnightLeapDaysAndTheTimeBefore1970) {
  EXPECT_EQ(time_text("%I %p", 0), "12 AM");
  EXPECT_EQ(time_text("%I %p", 12 * 3600), "12 PM");
  EXPECT_EQ(time_text("%F %A", 1709164800), "2024-02-29 Thursday");
  EXPECT_EQ(time_text("%F %T %a %j", -1), "1969-12-31 23:59:59 Wed 365");
}

TEST(JinjaStrftime, RefusesOtherDirectives) {
  EXPECT_THROW(time_text("%Q", 0), Error);
  EXPECT_THROW(time_text("%", 0), Error);
  EXPECT_THROW(time_text("%-", 0), Error);
}

}  // namespace
}  // namespace sluice::text::jinja
