// Random JSON schemas over everything the grammar compiler supports, by seed. Each has valid
// values, and none that a validator and the compiler could read differently: the alternatives of
// oneOf have different types, and enum stands alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "unit/text/grammar/random.h"

namespace sluice::text::test {

class RandomSchema {
 public:
  using Json = nlohmann::ordered_json;

  explicit RandomSchema(uint64_t seed) : dice_(seed) {}

  Json make() {
    Json defs = Json::object();
    // A tree that always can end, and whatever else.
    defs["node"] = {{"type", "object"},
                    {"properties",
                     {{"value", scalar()},
                      {"next", {{"anyOf", {{{"type", "null"}}, {{"$ref", "#/$defs/node"}}}}}},
                      {"children", {{"type", "array"}, {"items", {{"$ref", "#/$defs/node"}}}}}}},
                    {"required", {"value", "next"}},
                    {"additionalProperties", false}};
    defs["other"] = any(2);
    has_defs_ = true;
    Json root = dice_.chance(8) ? any(0) : object(0);
    if (root.is_boolean()) root = Json::object();
    root["$defs"] = std::move(defs);
    if (dice_.chance(3)) root["description"] = "ignored";
    return root;
  }

 private:
  template <size_t n>
  std::string_view one_of(const std::string_view (&choices)[n]) {
    return choices[dice_.roll(n)];
  }

  int number(int low, int high) {
    return low + static_cast<int>(dice_.roll(static_cast<size_t>(high - low + 1)));
  }

  Json any(int depth) {
    if (depth >= 3) return scalar();
    switch (dice_.roll(12)) {
      case 0:
      case 1:
      case 2:
        return object(depth);
      case 3:
      case 4:
        return array(depth);
      case 5:
        return {{"anyOf", {any(depth + 1), any(depth + 1), scalar()}}};
      case 6:
        return {{"oneOf", {string(), integer(), object(depth + 1), {{"type", "null"}}}}};
      case 7:
        return merged(depth);
      case 8:
        return has_defs_ ? Json{{"$ref", dice_.chance(2) ? "#/$defs/node" : "#/$defs/other"}}
                         : scalar();
      case 9:
        return dice_.chance(2) ? Json(true) : Json{{"title", "anything"}};
      default:
        return scalar();
    }
  }

  Json scalar() {
    switch (dice_.roll(9)) {
      case 0:
      case 1:
      case 2:
        return string();
      case 3:
        return integer();
      case 4:
        return real();
      case 5:
        return {{"type", dice_.chance(2) ? "boolean" : "null"}};
      case 6:
        return listed();
      case 7:
        return {{"type", {"string", "integer", "null"}}, {"maxLength", 5}, {"minimum", -3}};
      default:
        return {{"type", "number"}, {"nullable", true}, {"maximum", 12.5}};
    }
  }

  Json string() {
    static constexpr std::string_view kPatterns[] = {"^[a-z]+$",
                                                     "^[A-Z]{2,4}-\\d{3}$",
                                                     "foo",
                                                     "^(?:yes|no|maybe\\?)$",
                                                     "\\d\\d$",
                                                     "^\\s*\\w+\\s*$",
                                                     "^[^\"\\\\]*$",
                                                     "^.{3}$|^x",
                                                     "^\\u00e9+[\\x41]?$",
                                                     "^[\\n\\t\"\\\\ a]{1,6}$",
                                                     "^(a|b(c|d){2})*$"};
    static constexpr std::string_view kFormats[] = {"date", "time",     "date-time",    "duration",
                                                    "uuid", "email",    "ipv4",         "ipv6",
                                                    "uri",  "hostname", "json-pointer", "byte"};
    Json out = {{"type", "string"}};
    switch (dice_.roll(5)) {
      case 0:
        out["minLength"] = number(0, 4);
        if (dice_.chance(2)) out["maxLength"] = number(4, 30);
        break;
      case 1:
        out["pattern"] = one_of(kPatterns);
        break;
      case 2:
        out["format"] = one_of(kFormats);
        break;
      case 3:
        out["pattern"] = "^[a-zé ]+$";
        out["minLength"] = number(0, 3);
        out["maxLength"] = number(3, 12);
        break;
      default:
        break;
    }
    return out;
  }

  Json integer() {
    Json out = {{"type", "integer"}};
    const int low = number(-1200, 1200);
    if (dice_.chance(2)) out[dice_.chance(3) ? "exclusiveMinimum" : "minimum"] = low;
    if (dice_.chance(2))
      out[dice_.chance(3) ? "exclusiveMaximum" : "maximum"] = low + number(2, 2000);
    return out;
  }

  Json real() {
    Json out = {{"type", "number"}};
    const double low = number(-4000, 4000) / (dice_.chance(2) ? 8.0 : 100.0);
    if (dice_.chance(2)) out[dice_.chance(2) ? "exclusiveMinimum" : "minimum"] = low;
    if (dice_.chance(2)) {
      out[dice_.chance(2) ? "exclusiveMaximum" : "maximum"] = low + number(1, 300) / 16.0;
    }
    return out;
  }

  Json listed() {
    static const std::vector<Json> kValues = {"red",
                                              "a \"quoted\" word",
                                              "line\nbreak",
                                              "",
                                              "世界",
                                              1,
                                              -7,
                                              2.5,
                                              true,
                                              nullptr,
                                              Json::array({1, "x"}),
                                              Json{{"k", Json::array()}}};
    if (dice_.chance(3)) return {{"const", kValues[dice_.roll(kValues.size())]}};
    Json values = Json::array();
    for (const Json& value : kValues) {
      if (dice_.chance(3)) values.push_back(value);
    }
    if (values.empty()) values.push_back("only");
    return {{"enum", values}};
  }

  Json array(int depth) {
    Json out = {{"type", "array"}};
    if (dice_.chance(3)) {
      out["prefixItems"] = {any(depth + 1), scalar(), scalar()};
      if (dice_.chance(2)) out["items"] = dice_.chance(2) ? Json(false) : scalar();
    } else if (!dice_.chance(6)) {
      out["items"] = any(depth + 1);
    }
    if (dice_.chance(2)) out["minItems"] = number(0, 3);
    if (dice_.chance(2)) out["maxItems"] = number(3, 5);
    return out;
  }

  Json object(int depth) {
    static constexpr std::string_view kNames[] = {"a",  "ab", "name", "été", "with space",
                                                  "\"", "\n", "",     "世",  "id"};
    Json out = {{"type", "object"}, {"properties", Json::object()}, {"required", Json::array()}};
    const size_t n = dice_.roll(6);
    for (size_t i = 0; i < n; ++i) {
      const auto name = std::string(one_of(kNames));
      if (out["properties"].contains(name)) continue;
      out["properties"][name] = any(depth + 1);
      if (!dice_.chance(3)) out["required"].push_back(name);
    }
    switch (dice_.roll(5)) {
      case 0:
      case 1:
        out["additionalProperties"] = false;
        break;
      case 2:
        out["additionalProperties"] = true;
        break;
      case 3:
        out["additionalProperties"] = scalar();
        break;
      default:
        break;
    }
    return out;
  }

  // Two objects with different properties, neither of them closed, and perhaps more beside them.
  Json merged(int depth) {
    Json a = object(depth + 1), b = object(depth + 1);
    a.erase("additionalProperties");
    b.erase("additionalProperties");
    Json renamed = Json::object();
    for (const auto& [name, schema] : b["properties"].items()) renamed["b_" + name] = schema;
    b["properties"] = renamed;
    for (Json& name : b["required"]) name = "b_" + name.get<std::string>();
    Json out = {{"allOf", {a, b}}};
    if (dice_.chance(2)) {
      out["properties"] = {{"beside", scalar()}};
      out["required"] = {"beside"};
      out["type"] = "object";
    }
    return out;
  }

  Dice dice_;
  bool has_defs_ = false;
};

}  // namespace sluice::text::test
