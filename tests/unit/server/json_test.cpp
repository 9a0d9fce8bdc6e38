// Bodies of requests: what is refused before anything is built of it, and how.
// SPDX-License-Identifier: Apache-2.0
#include "server/json.h"

#include <gtest/gtest.h>

#include "server/api_error.h"
#include "server/fields.h"

namespace sluice::server {
namespace {

std::string refusal_of_body(const std::string& body) {
  try {
    parse_body(body);
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    return error.what();
  }
  return "";
}

TEST(ParseBody, TakesObjects) {
  EXPECT_EQ(parse_body(R"({"a": [1, {"b": "]]]]"}]})")["a"][1]["b"], "]]]]");
}

TEST(ParseBody, RefusesWhatIsNoJsonObject) {
  EXPECT_NE(refusal_of_body("").find("empty"), std::string::npos);
  EXPECT_NE(refusal_of_body(R"({"a": )").find("no JSON: there is a mistake at byte 7"),
            std::string::npos)
      << refusal_of_body(R"({"a": )");
  EXPECT_NE(refusal_of_body("[1, 2]").find("is array; expected a JSON object"), std::string::npos);
  EXPECT_NE(refusal_of_body(R"({"a": 1e999})").find("out of range"), std::string::npos);
}

TEST(ParseBody, RefusesDeepNesting) {
  const std::string deep(100'000, '[');
  EXPECT_NE(refusal_of_body(R"({"a": )" + deep).find("nests deeper than 64"), std::string::npos);
  const auto nested = [](size_t n) {
    return R"({"a": )" + std::string(n, '[') + std::string(n, ']') + "}";
  };
  EXPECT_EQ(refusal_of_body(nested(kMostDepth - 1)), "");
  EXPECT_NE(refusal_of_body(nested(kMostDepth)), "");
}

TEST(ParseBody, BracketsInTextsAreText) {
  const std::string text(1000, '[');
  EXPECT_EQ(refusal_of_body(R"({"a": "\")" + text + R"("})"), "");
}

TEST(ParseBody, RefusesWhatIsNotUtf8) {
  EXPECT_NE(refusal_of_body("{\"a\": \"\xff\"}").find("not UTF-8 at byte 7"), std::string::npos);
  EXPECT_NE(refusal_of_body("{\"a\": \"\xed\xa0\x80\"}").find("not UTF-8"), std::string::npos);
}

std::string refusal_of_field(const char* body, const std::function<void(const Fields&)>& read) {
  const Json json = parse_body(body);
  try {
    read(Fields(json));
  } catch (const ApiError& error) {
    return error.param() + ": " + error.what();
  }
  return "";
}

TEST(Fields, NullAndMissingAreTheSame) {
  const Json json = parse_body(R"({"a": null})");
  const Fields fields(json);
  EXPECT_FALSE(fields.number("a"));
  EXPECT_FALSE(fields.number("b"));
  EXPECT_TRUE(fields.strings("a").empty());
}

TEST(Fields, WrongOnesAreNamed) {
  EXPECT_EQ(refusal_of_field(R"({"n": "x"})", [](const Fields& f) { f.integer("n", 1, 8); }),
            "n: 'n' is the text \"x\"; expected a number");
  EXPECT_EQ(refusal_of_field(R"({"n": 1.5})", [](const Fields& f) { f.integer("n", 1, 8); }),
            "n: 'n' is the number 1.5; expected a whole number from 1 to 8");
  EXPECT_EQ(refusal_of_field(R"({"n": 9})", [](const Fields& f) { f.integer("n", 1, 8); }),
            "n: 'n' is the number 9; expected a whole number from 1 to 8");
  EXPECT_EQ(refusal_of_field(R"({"stop": [1]})", [](const Fields& f) { f.strings("stop"); }),
            "stop[0]: 'stop[0]' is the number 1; expected a text");
  EXPECT_EQ(refusal_of_field(R"({})", [](const Fields& f) { f.required_string("content"); }),
            "content: 'content' is missing; expected a text");
  EXPECT_EQ(refusal_of_field(R"({"t": [-1]})", [](const Fields& f) { f.integers("t"); }),
            "t[0]: 't[0]' is the number -1; expected a token id");
}

}  // namespace
}  // namespace sluice::server
