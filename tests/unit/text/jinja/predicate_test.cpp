// Every test that may follow `is`. Every expected output was checked against Jinja2 3.1.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "unit/text/jinja/render.h"

namespace sluice::text::jinja {
namespace {

// The template prints T or F for each of its questions.
std::string answers(std::initializer_list<std::string_view> questions) {
  std::string text;
  for (const std::string_view question : questions) {
    text += "{{ 'T' if " + std::string(question) + " else 'F' }}";
  }
  return render(text);
}

TEST(JinjaTest, TellsKindsApart) {
  EXPECT_EQ(answers({"1 is defined", "x is defined", "x is undefined", "none is undefined"}),
            "TFTF");
  EXPECT_EQ(answers({"none is none", "0 is none", "x is none"}), "TFF");
  EXPECT_EQ(answers({"'a' is string", "1 is string", "x is string"}), "TFF");
  EXPECT_EQ(answers({"1 is number", "1.5 is number", "true is number", "'1' is number"}), "TTTF");
  EXPECT_EQ(answers({"1 is integer", "1.0 is integer", "true is integer"}), "TFF");
  EXPECT_EQ(answers({"1.0 is float", "1 is float"}), "TF");
  EXPECT_EQ(answers({"true is boolean", "1 is boolean"}), "TF");
  EXPECT_EQ(answers({"{} is mapping", "[] is mapping", "namespace() is mapping"}), "TFF");
  EXPECT_EQ(answers({"[] is iterable", "'a' is iterable", "{} is iterable", "() is iterable"}),
            "TTTT");
  EXPECT_EQ(answers({"1 is iterable", "none is iterable", "x is iterable"}), "FFT");
  EXPECT_EQ(answers({"[] is sequence", "'a' is sequence", "{} is sequence", "1 is sequence"}),
            "TTTF");
  EXPECT_EQ(answers({"range is callable", "'a'.upper is callable", "'a' is callable"}), "TTF");
}

TEST(JinjaTest, AsksAboutValues) {
  EXPECT_EQ(answers({"true is true", "1 is true", "false is false", "0 is false"}), "TFTF");
  EXPECT_EQ(answers({"2 is even", "-3 is odd", "2.0 is even", "2.5 is odd", "2.5 is even"}),
            "TTTFF");
  EXPECT_EQ(answers({"9 is divisibleby 3", "9 is divisibleby(2)"}), "TF");
  EXPECT_EQ(answers({"'aé1' is lower", "'aB' is lower", "'ÉA' is upper", "'1' is upper"}), "TFTF");
  EXPECT_EQ(answers({"'upper' is filter", "'x' is filter", "'odd' is test", "'x' is test"}),
            "TFTF");
}

TEST(JinjaTest, ComparesTwoValues) {
  EXPECT_EQ(answers({"1 is eq 1", "1 is equalto(1.0)", "1 is ne 2", "1 is eq '1'"}), "TTTF");
  EXPECT_EQ(answers({"2 is gt 1", "2 is ge 2", "2 is lt 2", "2 is le 2"}), "TTFT");
  EXPECT_EQ(answers({"2 is greaterthan 1", "1 is lessthan 2"}), "TT");
  EXPECT_EQ(answers({"1 is in [1]", "'a' is in 'bab'", "1 is in([2])"}), "TTF");
  EXPECT_EQ(answers({"none is sameas none", "[] is sameas []", "1 is sameas true"}), "TFF");
  EXPECT_EQ(render("{% set a = [] %}{% set b = a %}{{ a is sameas b }}"), "True");
}

TEST(JinjaTest, CanBeNegatedAndCombined) {
  EXPECT_EQ(answers({"x is not defined", "1 is not none and 2 is even", "not 1 is string"}), "TTT");
  EXPECT_EQ(answers({"1 is eq 1 or x.y", "x is defined and x.y", "2 is odd == false"}), "TFT");
  EXPECT_EQ(render("{{ 1 if x is defined else 2 }}{{ 1 is number if true else 3 }}"), "2True");
}

TEST(JinjaTest, RefusesWhatItCannotAnswer) {
  expect_fails(Errc::bad_request,
               {{"{{ 'a' is odd }}", "what is divided must be a number, not string"},
                {"{{ 1 is divisibleby 0 }}", "division by zero"},
                {"{{ 1 is divisibleby }}", "the argument 'num' is missing"},
                {"{{ 1 is eq }}", "the argument 'other' is missing"},
                {"{{ 1 is lt 'a' }}", "no order between integer and string"},
                {"{{ 1 is none(2) }}", "takes not more than 0 arguments"}});
}

}  // namespace
}  // namespace sluice::text::jinja
