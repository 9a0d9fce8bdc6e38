// Types, listed values, alternatives, joined schemas and references; and what is refused by name.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "text/json_schema/json_schema.h"
#include "unit/text/grammar/accepts.h"

namespace sluice::text {
namespace {

using test::expect_schema;
using test::schema_error;

TEST(JsonSchemaType, MayBeOneOrSeveral) {
  expect_schema(R"({"type":"boolean"})", {"true", "false"}, {"null", "1", "True"});
  expect_schema(R"({"type":"null"})", {"null"}, {"false", "\"null\""});
  expect_schema(R"({"type":["string","null"]})", {R"("a")", "null"}, {"1", "{}"});
  expect_schema(R"({"type":["integer","string"],"minimum":5,"maxLength":1})", {"5", R"("a")"},
                {"4", R"("ab")"});
  expect_schema(R"({"type":["array","object"]})", {"[]", "{}", "[1]", R"({"a":1})"}, {"1"});
  expect_schema(R"({"type":"string","nullable":true})", {R"("a")", "null"}, {"1"});
  expect_schema(R"({"type":"string","nullable":false})", {R"("a")"}, {"null"});
}

TEST(JsonSchemaType, MayBeLeftOpen) {
  for (const char* schema :
       {"{}", "true", R"({"title":"x","description":"y","default":3,"examples":[1],
                             "$comment":"c","x-note":{"multipleOf":3}})",
        R"({"nullable":true})"}) {
    expect_schema(schema, {"1", R"("a")", "null", "[1,{}]", R"({"a":[true]})"}, {"", "a", "[1"});
  }
  EXPECT_EQ(schema_error("false"),
            "nothing can ever match the grammar: # has no end or contradicts itself; give it an "
            "alternative that ends");
}

TEST(JsonSchemaListed, HasExactlyTheValues) {
  expect_schema(R"({"enum":["a","ab",1,2.5,null,true,[1,"x"],{"k":{}}]})",
                {R"("a")", R"("ab")", "1", "2.5", "null", "true", R"([1,"x"])", R"({"k":{}})"},
                {R"("b")", "2", "1.0", "false", "[1]", R"([1, "x"])", "{}"});
  expect_schema(R"({"const":"x\ny"})", {R"("x\ny")"}, {R"("x")"});
  expect_schema(R"({"const":null})", {"null"}, {"0"});
  expect_schema(R"({"enum":["é世"]})", {R"("é世")"}, {R"("\u00e9世")"});
}

TEST(JsonSchemaListed, IsFilteredByWhatStandsBeside) {
  expect_schema(R"({"type":"string","enum":["a",1,"bc",null]})", {R"("a")", R"("bc")"},
                {"1", "null"});
  expect_schema(R"({"type":"integer","enum":[1,2.0,2.5,"3"]})", {"1", "2.0"}, {"2.5", R"("3")"});
  expect_schema(R"({"enum":[1,5,9,"x"],"minimum":2,"exclusiveMaximum":9})", {"5", R"("x")"},
                {"1", "9"});
  expect_schema(R"({"enum":["a","ab","世界人"],"minLength":2,"maxLength":2})", {R"("ab")"},
                {R"("a")", R"("世界人")"});
  expect_schema(R"({"enum":[1,2],"const":2})", {"2"}, {"1"});
  expect_schema(R"({"type":"string","enum":["a",null],"nullable":true})", {R"("a")", "null"}, {});
  EXPECT_EQ(
      schema_error(R"({"enum":["a"],"pattern":"b"})"),
      "JSON schema, #: found pattern beside enum or const, which is not supported; leave it out");
  EXPECT_EQ(schema_error(R"({"enum":"a"})"), "JSON schema, #: enum must be a list of values");
  EXPECT_EQ(schema_error(R"({"enum":[1],"type":"string"})"),
            "nothing can ever match the grammar: # has no end or contradicts itself; give it an "
            "alternative that ends");
}

TEST(JsonSchemaAnyOf, TakesOneOfSeveral) {
  for (const char* keyword : {"anyOf", "oneOf"}) {
    expect_schema(
        cat("{\"", keyword,
            R"(":[{"type":"integer"},{"const":"a"},{"type":"array","items":{"$ref":"#"}}]})"),
        {"1", R"("a")", "[]", R"([1,["a"]])"}, {R"("b")", "null", "[null]"});
  }
  expect_schema(R"({"anyOf":[{"type":"string","maxLength":1},{"type":"string","pattern":"^b+$"}]})",
                {R"("a")", R"("bbb")"}, {R"("aa")"});
  EXPECT_EQ(schema_error(R"({"anyOf":[]})"),
            "JSON schema, #: anyOf must be a list of at least one schema");
  EXPECT_EQ(
      schema_error(R"({"anyOf":[true],"oneOf":[true]})"),
      "JSON schema, #: found both anyOf and oneOf, which is not supported; write one of them");
}

TEST(JsonSchemaAnyOf, HoldsTogetherWithWhatStandsBeside) {
  expect_schema(R"({"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},
                    "anyOf":[{"required":["a"]},{"required":["b"]}]})",
                {R"({"a":1})", R"({"b":1})", R"({"a":1,"b":2})"}, {"{}"});
  expect_schema(R"({"type":"string","oneOf":[{"const":"x"},{"const":1},{"const":"y"}]})",
                {R"("x")", R"("y")"}, {"1"});
}

TEST(JsonSchemaAllOf, JoinsObjects) {
  expect_schema(
      R"({"allOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},
                             {"properties":{"b":{"type":"string"}}}],"properties":{"c":{"const":1}}})",
      {R"({"c":1,"a":1,"b":"x"})", R"({"a":1})"}, {"{}", R"({"a":"x"})", R"({"c":1})"});
  // Both sides say something about the same property.
  expect_schema(
      R"({"allOf":[{"properties":{"a":{"minimum":3}}},{"properties":{"a":{"type":"integer","maximum":5}}}]})",
      {"{}", R"({"a":3})", R"({"a":5})"}, {R"({"a":2})", R"({"a":6})", R"({"a":3.5})"});
  // One side is closed: what only the other lists cannot be there.
  expect_schema(R"({"allOf":[{"properties":{"a":true},"additionalProperties":false},
                             {"properties":{"a":{"const":1},"b":{"const":2}}}]})",
                {"{}", R"({"a":1})"}, {R"({"b":2})", R"({"a":1,"b":2})", R"({"a":2})"});
  // One side says what all others are.
  expect_schema(
      R"({"allOf":[{"additionalProperties":{"type":"integer"}},{"properties":{"b":{"minimum":2}}}]})",
      {"{}", R"({"b":2})", R"({"b":2,"c":1})"}, {R"({"b":1})", R"({"b":2.5})", R"({"c":"x"})"});
}

TEST(JsonSchemaAllOf, TightensEverythingElse) {
  expect_schema(R"({"allOf":[{"type":["string","integer"]},{"type":["integer","null"]}]})", {"1"},
                {"null", R"("a")"});
  expect_schema(R"({"allOf":[{"type":"number"},{"type":"integer"}],"minimum":3,"maximum":9})",
                {"3", "9"}, {"2", "10", "3.5"});
  expect_schema(
      R"({"minimum":1,"allOf":[{"minimum":3},{"maximum":9},{"maximum":5}],"type":"integer"})",
      {"3", "5"}, {"1", "6"});
  expect_schema(R"({"allOf":[{"minLength":1},{"minLength":2,"maxLength":4},{"maxLength":3}]})",
                {R"("ab")", R"("abc")"}, {R"("a")", R"("abcd")"});
  expect_schema(R"({"allOf":[{"enum":[1,2,3]},{"enum":[2,3,4]},{"const":3}]})", {"3"}, {"2", "4"});
  expect_schema(
      R"({"allOf":[{"items":{"type":"integer"}},{"items":{"minimum":2}},{"minItems":1}]})", {"[2]"},
      {"[]", "[1]"});
  expect_schema(R"({"allOf":[{"anyOf":[{"const":1},{"const":2}]},{"type":"integer"}]})", {"1", "2"},
                {"3"});
  EXPECT_EQ(schema_error(R"({"allOf":[{"type":"string"},{"type":"null"}]})"),
            "JSON schema, #: found types \"string\" and \"null\", which must both hold and have "
            "nothing in "
            "common");
  EXPECT_EQ(
      schema_error(R"({"allOf":[{"pattern":"a"},{"pattern":"b"}]})"),
      "JSON schema, #: found two different values of pattern that must both hold, which is not "
      "supported; write one of them");
  EXPECT_EQ(schema_error(R"({"allOf":3})"), "JSON schema, #: allOf must be a list of schemas");
}

TEST(JsonSchemaRef, FollowsReferences) {
  expect_schema(
      R"({"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/definitions/b"}},"definitions":{"b":{"const":1}}})",
      {"1"}, {"2"});
  expect_schema(R"({"properties":{"x":{"const":1},"y":{"$ref":"#/properties/x"}}})",
                {R"({"x":1,"y":1})"}, {R"({"y":2})"});
  expect_schema(R"({"$ref":"#/$defs/a%20~1b~0c","$defs":{"a /b~c":{"const":1}}})", {"1"}, {"2"});
  expect_schema(
      R"({"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false})",
      {"{}", R"({"next":{"next":{}}})"}, {R"({"next":1})"});
  expect_schema(
      R"({"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"kids":{"type":"array",
                    "items":{"$ref":"#/$defs/tree"}}},"required":["v"]}},"$ref":"#/$defs/tree"})",
      {R"({"v":1})", R"({"v":1,"kids":[{"v":2,"kids":[]},{"v":3}]})"},
      {"{}", R"({"v":1,"kids":[1]})"});
}

TEST(JsonSchemaRef, JoinsWhatStandsBeside) {
  expect_schema(R"({"$defs":{"a":{"type":"object","properties":{"x":{"type":"integer"}}}},
                    "$ref":"#/$defs/a","required":["x"],"description":"joined"})",
                {R"({"x":1})"}, {"{}", R"({"x":"a"})"});
  // Recursive through a reference that is joined every time.
  expect_schema(
      R"({"$defs":{"a":{"type":"object","properties":{"x":{"$ref":"#/$defs/a","required":["x"]}}}},
                    "$ref":"#/$defs/a"})",
      {"{}"}, {R"({"x":{}})", R"({"x":1})"});
}

TEST(JsonSchemaRef, RefusesWhatLeadsNowhere) {
  EXPECT_EQ(schema_error(R"({"$ref":"#/$defs/a"})"),
            "JSON schema, #: found $ref #/$defs/a, but the schema has no such place");
  EXPECT_EQ(schema_error(R"({"$ref":"other.json"})"),
            "JSON schema, #: found $ref other.json, expected one inside the schema, such as "
            "#/$defs/name");
  EXPECT_EQ(schema_error(R"({"$ref":1})"), "JSON schema, #: $ref must be a string");
  EXPECT_EQ(schema_error(R"({"$ref":"#/x~2y"})"),
            "JSON schema, #: found $ref #/x~2y, but the schema has no such place");
  EXPECT_EQ(schema_error(R"({"$ref":"#"})"),
            "nothing can ever match the grammar: # has no end or contradicts itself; give it an "
            "alternative that ends");
  EXPECT_EQ(schema_error(R"({"anyOf":[{"type":"null"},{"$ref":"#"}]})"),
            "left recursion: # refers to itself before any text (# -> #/anyOf/1 -> #); write the "
            "repetition with * or put text first");
}

TEST(JsonSchemaError, NamesKeywordsThatAreNotSupported) {
  for (const char* keyword :
       {"multipleOf", "not", "if", "then", "else", "dependencies", "dependentRequired",
        "dependentSchemas", "patternProperties", "propertyNames", "minProperties", "maxProperties",
        "contains", "minContains", "maxContains", "unevaluatedItems", "unevaluatedProperties",
        "additionalItems", "$dynamicRef"}) {
    const std::string schema = cat(R"({"properties":{"deep":{"items":{")", keyword, "\":1}}}}");
    EXPECT_EQ(schema_error(schema),
              cat("JSON schema, #/properties/deep/items: ", keyword,
                  " is not supported, and without it the "
                  "output could be invalid; express it otherwise or remove it"));
  }
  EXPECT_EQ(schema_error(R"({"maxLenght":3})"),
            "JSON schema, #: found the keyword maxLenght, which is unknown; remove it, or begin it "
            "with x-");
}

TEST(JsonSchemaError, SaysWhatIsMalformed) {
  EXPECT_NE(schema_error("{").find("the JSON schema is not valid JSON: "), std::string::npos);
  EXPECT_NE(schema_error("").find("the JSON schema is not valid JSON: "), std::string::npos);
  EXPECT_NE(schema_error("\"\xff\"").find("the JSON schema is not valid JSON: "),
            std::string::npos);
  EXPECT_NE(schema_error("1e999").find("the JSON schema is not valid JSON: "), std::string::npos);
  EXPECT_EQ(schema_error("3"), "JSON schema, #: found number, expected a schema");
  EXPECT_EQ(schema_error(R"({"properties":{"a\nb":3}})"),
            "JSON schema, #/properties/a?b: found number, expected a schema");
  EXPECT_EQ(schema_error(R"({"type":"int"})"),
            "JSON schema, #: found type \"int\", expected object, array, string, number, integer, "
            "boolean or "
            "null");
  EXPECT_EQ(schema_error(R"({"type":[]})"),
            "JSON schema, #: found an empty list of types, expected at least one");
  EXPECT_EQ(schema_error(R"({"properties":[]})"), "JSON schema, #: properties must be an object");
  EXPECT_EQ(schema_error(R"({"required":"a"})"),
            "JSON schema, #: required must be a list of names");
  EXPECT_EQ(schema_error(R"({"required":[1]})"),
            "JSON schema, #: required must be a list of names");
}

}  // namespace
}  // namespace sluice::text
