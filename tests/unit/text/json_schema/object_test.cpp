// Objects and arrays under a schema: order, presence, additional properties, counts, white space.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/accepts.h"

namespace sluice::text {
namespace {

using test::expect_schema;
using test::schema_error;
using test::schema_verdict;

TEST(JsonSchemaObject, HasItsPropertiesInTheirOrder) {
  expect_schema(
      R"({"type":"object","properties":{"b":{"type":"integer"},"a":{"type":"boolean"}},
                    "required":["a","b"]})",
      {R"({"b":1,"a":true})", R"({"b": 1, "a": false})"},
      {"{}", R"({"a":true,"b":1})", R"({"b":1})", R"({"b":1,"a":1})", R"({"b":1,"a":true,})",
       R"({"b":1,"a":true,"c":1})", R"({"b":1,"b":1,"a":true})", "null", "[]"});
}

// All 2^4 ways to leave properties out, against the rule itself.
TEST(JsonSchemaObject, LeavesOutWhatIsNotRequired) {
  const std::vector<std::string> names = {"a", "ab", "b", "ba"};
  for (unsigned required = 0; required < 16; ++required) {
    nlohmann::ordered_json schema = {{"type", "object"}};
    for (size_t i = 0; i < 4; ++i) {
      schema["properties"][names[i]] = {{"const", i}};
      if ((required >> i & 1) != 0) schema["required"].push_back(names[i]);
    }
    const GrammarMatcher matcher = test::matcher_of(compile_json_schema(schema.dump()));
    for (unsigned present = 0; present < 16; ++present) {
      nlohmann::ordered_json value = nlohmann::ordered_json::object();
      for (size_t i = 0; i < 4; ++i) {
        if ((present >> i & 1) != 0) value[names[i]] = i;
      }
      const bool expected = (present & required) == required;
      EXPECT_EQ(test::verdict(matcher, value.dump()) == "match", expected) << schema << value;
    }
  }
}

TEST(JsonSchemaObject, ClosesListsOfPropertiesUnlessToldOtherwise) {
  expect_schema(R"({"properties":{"a":{"type":"null"}}})", {"{}", R"({"a":null})"},
                {R"({"b":1})", R"({"a":null,"b":1})", "1"});
  expect_schema(R"({"type":"object"})", {"{}", R"({"x":[1,{"y":"z"}],"x":2})"}, {"[]", R"({"x"})"});
  expect_schema(R"({"type":"object","additionalProperties":false})", {"{}"}, {R"({"a":1})"});
  expect_schema(R"({"type":"object","properties":{},"additionalProperties":false})", {"{}"},
                {R"({"a":1})"});
}

TEST(JsonSchemaObject, PutsAdditionalPropertiesBehindTheListedOnes) {
  const char* schema =
      R"({"type":"object","properties":{"id":{"type":"integer"},"i":{"type":"integer"}},
                           "required":["id"],"additionalProperties":{"type":"string"}})";
  expect_schema(schema,
                {R"({"id":1})", R"({"id":1,"x":"y"})", R"({"id":1,"i":2,"idd":"y","z":""})",
                 R"({"id":1,"":"empty"})", R"({"id":1,"世":"y"})", R"({"id":1,"ID":"y"})"},
                {"{}", R"({"x":"y","id":1})", R"({"id":1,"x":2})", R"({"id":1,"id":"y"})",
                 R"({"id":1,"i":"y"})", R"({"id":1,"\u0069":"y"})", R"({"id":1,"a\"b":"y"})"});
  expect_schema(R"({"additionalProperties":true})", {"{}", R"({"a":[1]})"}, {"1"});
  expect_schema(R"({"additionalProperties":{"type":"null"}})", {"{}", R"({"a":null,"b":null})"},
                {R"({"a":1})"});
}

TEST(JsonSchemaObject, WritesRequiredNamesThatAreNotListed) {
  expect_schema(R"({"type":"object","required":["x"]})", {R"({"x":1})", R"({"x":{"y":[]}})"},
                {"{}", R"({"y":1})"});
  expect_schema(R"({"required":["x"],"additionalProperties":{"type":"integer"}})",
                {R"({"x":1})", R"({"x":1,"y":2})"}, {R"({"y":1})", R"({"x":"a"})"});
  EXPECT_EQ(
      schema_error(R"({"properties":{"a":true},"required":["b"],"additionalProperties":false})"),
      "JSON schema, #: required names b, which properties does not list and additionalProperties "
      "forbids");
}

TEST(JsonSchemaObject, EscapesNamesAsJsonDoes) {
  expect_schema(R"({"properties":{"a\"b\\\n":{"const":1},"é\u0001":{"const":2},"":{"const":3}}})",
                {R"({"a\"b\\\n":1,"é\u0001":2,"":3})"}, {"{\"a\"b\":1}"});
}

TEST(JsonSchemaObject, LeavesOutPropertiesWithoutValues) {
  expect_schema(R"({"properties":{"a":false,"b":true}})", {"{}", R"({"b":1})"},
                {R"({"a":1})", R"({"a":)"});
  EXPECT_EQ(
      schema_error(R"({"properties":{"a":false},"required":["a"]})"),
      "nothing can ever match the grammar: #/properties/a has no end or contradicts itself; give "
      "it an alternative that ends");
}

TEST(JsonSchemaArray, HasItemsAndCounts) {
  expect_schema(R"({"type":"array","items":{"type":"integer"}})", {"[]", "[1]", "[1,2, 3]"},
                {"[", "[1", "[1,]", "[,1]", "[\"a\"]", "1", "{}"});
  expect_schema(R"({"items":{"type":"integer"},"minItems":2,"maxItems":3})", {"[1,2]", "[1,2,3]"},
                {"[]", "[1]", "[1,2,3,4]"});
  expect_schema(R"({"type":"array","minItems":1})", {"[1]", R"(["a",{},[]])"}, {"[]"});
  expect_schema(R"({"type":"array","maxItems":0})", {"[]"}, {"[1]"});
  expect_schema(R"({"type":"array","items":{"const":1},"maxItems":1})", {"[]", "[1]"}, {"[1,1]"});
  expect_schema(R"({"type":"array","items":false})", {"[]"}, {"[1]"});
  expect_schema(R"({"type":"array","uniqueItems":false})", {"[1,1]"}, {});
  expect_schema(R"({"type":"array","uniqueItems":true,"maxItems":1})", {"[1]"}, {"[1,1]"});
}

TEST(JsonSchemaArray, HasATypeForEachOfTheFirstItems) {
  const char* pair = R"({"prefixItems":[{"type":"integer"},{"type":"string"}]})";
  expect_schema(pair, {"[]", "[1]", R"([1,"a"])"}, {R"(["a"])", R"([1,2])", R"([1,"a",3])"});
  expect_schema(R"({"prefixItems":[{"type":"integer"},{"type":"string"}],"minItems":2})",
                {R"([1,"a"])"}, {"[]", "[1]", R"([1,"a",3])"});
  expect_schema(R"({"prefixItems":[{"type":"integer"}],"items":{"type":"null"}})",
                {"[]", "[1]", "[1,null,null]"}, {"[null]", "[1,1]"});
  expect_schema(
      R"({"prefixItems":[{"type":"integer"}],"items":{"type":"null"},"minItems":2,"maxItems":3})",
      {"[1,null]", "[1,null,null]"}, {"[1]", "[1,null,null,null]"});
  expect_schema(R"({"prefixItems":[{"type":"integer"}],"items":false,"maxItems":5})", {"[]", "[1]"},
                {"[1,1]"});
  expect_schema(R"({"prefixItems":[{"const":1},{"const":2}],"maxItems":1})", {"[]", "[1]"},
                {"[1,2]"});
  expect_schema(R"({"prefixItems":[{"const":1}],"minItems":3})", {R"([1,"x",{}])", "[1,2,3,4]"},
                {"[1]", "[1,2]"});
}

TEST(JsonSchemaArray, RefusesWhatCannotBe) {
  EXPECT_EQ(schema_error(R"({"minItems":3,"maxItems":2})"),
            "JSON schema, #: found minItems 3, but at most 2 are possible");
  EXPECT_EQ(schema_error(R"({"prefixItems":[true],"items":false,"minItems":2})"),
            "JSON schema, #: found minItems 2, but at most 1 are possible");
  EXPECT_EQ(
      schema_error(R"({"items":{"uniqueItems":true}})"),
      "JSON schema, #/items: uniqueItems is not supported, and without it the output could be "
      "invalid; remove it");
  EXPECT_EQ(schema_error(R"({"items":[true,true]})"),
            "JSON schema, #: found a list of items; call it prefixItems");
  EXPECT_EQ(schema_error(R"({"prefixItems":{}})"),
            "JSON schema, #: prefixItems must be a list of schemas");
}

TEST(JsonSchemaSpacing, IsWhatTheOptionsSay) {
  const char* schema =
      R"({"properties":{"a":{"type":"array","items":{"const":1}},"b":{"const":2}}})";
  struct Case {
    const char* text;
    bool compact, spaced, lines;
  };
  for (const Case& c : {
           Case{R"({"a":[1,1],"b":2})", true, true, true},
           Case{R"({"a": [1, 1], "b": 2})", false, true, true},
           Case{R"({"a":[1, 1],"b": 2})", false, true, true},
           Case{R"({ "a":[1] })", false, false, true},
           Case{"{\n  \"a\": [\n    1,\n    1\n  ],\n  \"b\": 2\n}", false, false, true},
           Case{R"({"a":  [1]})", false, false, false},
           Case{R"({"a" :[1]})", false, false, false},
           Case{"{\n\n\n\"a\":[1]}", false, false, false},
           Case{"{\n                     \"a\":[1]}", false, false, false},  // 21 spaces
           Case{"{\n                    \"a\":[1]}", false, false, true},    // 20
           Case{R"( {"a":[1]})", false, false, false},
           Case{"{\"a\":[1]}\n", false, false, false},
       }) {
    const std::pair<JsonSpacing, bool> expectations[] = {{JsonSpacing::compact, c.compact},
                                                         {JsonSpacing::spaced, c.spaced},
                                                         {JsonSpacing::lines, c.lines}};
    for (const auto& [spacing, expected] : expectations) {
      JsonSchemaOptions options;
      options.spacing = spacing;
      EXPECT_EQ(schema_verdict(schema, c.text, options) == "match", expected)
          << c.text << ", spacing " << static_cast<int>(spacing);
    }
  }
}

// No white space can go on for ever: the longest run, byte by byte, is short.
TEST(JsonSchemaSpacing, NeverGoesOnForEver) {
  JsonSchemaOptions options;
  options.spacing = JsonSpacing::lines;
  const GrammarMatcher start = test::matcher_of(compile_json_object(options));
  for (const std::string text :
       {"{", "{\"a\":", "{\"a\":1", "{\"a\":1,", "{\"a\":[", "{\"a\":[1,"}) {
    GrammarMatcher m = start;
    ASSERT_TRUE(m.accept_bytes(text));
    int n = 0;
    while (n < 100 && (m.accept_bytes("\n") || m.accept_bytes(" "))) ++n;
    EXPECT_LE(n, 2 * 21) << text;
  }
}

TEST(JsonObject, IsAnyObjectAndNothingElse) {
  const GrammarMatcher matcher = test::matcher_of(compile_json_object());
  for (const char* text :
       {"{}", R"({"a":1})", R"({"a":{"b":[{},[],[[]],"x",1.5e3,true,false,null]}})",
        R"({"": "", "\n": "\u00e9"})"}) {
    EXPECT_EQ(test::verdict(matcher, text), "match") << text;
    EXPECT_TRUE(nlohmann::json::accept(text));
  }
  for (const char* text : {"", "[]", "1", "\"a\"", "null", "{a:1}", "{'a':1}", R"({"a":1,})",
                           R"({"a":01})", R"({"a":undefined})", R"({"a":1}})", R"({"a")"}) {
    EXPECT_NE(test::verdict(matcher, text), "match") << text;
  }
}

}  // namespace
}  // namespace sluice::text
