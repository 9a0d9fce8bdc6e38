// See merge.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/merge.h"

#include <algorithm>

#include "base/error.h"
#include "text/grammar/code_points.h"

namespace sluice::text::grammar {
namespace {

Json both(const Json& a, const Json& b) {
  if (a == b || b == Json(true)) return a;
  if (a == Json(true)) return b;
  return {{"allOf", {a, b}}};
}

void expect_object(const Json& value, const char* keyword, const std::string& path) {
  if (!value.is_object()) refuse_schema(path, cat(keyword, " must be an object"));
}

// Properties of one side that the other does not list fall under the other's additionalProperties.
void apply_additional(Json& properties, const Json& other, const std::string& path) {
  const auto additional = other.find("additionalProperties");
  if (additional == other.end()) return;
  const Json listed = other.value("properties", Json::object());
  expect_object(listed, "properties", path);
  for (auto& [name, schema] : properties.items()) {
    if (!listed.contains(name)) schema = both(schema, *additional);
  }
}

Json merge_properties(const Json& a, const Json& b, const std::string& path) {
  Json left = a.value("properties", Json::object()), right = b.value("properties", Json::object());
  expect_object(left, "properties", path);
  expect_object(right, "properties", path);
  apply_additional(left, b, path);
  apply_additional(right, a, path);
  for (const auto& [name, schema] : right.items()) {
    const auto place = left.find(name);
    if (place == left.end()) {
      left[name] = schema;
    } else {
      *place = both(*place, schema);
    }
  }
  return left;
}

Json as_list(const Json& value) { return value.is_array() ? value : Json::array({value}); }

bool has(const Json& list, const Json& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Types that both allow; integer is a kind of number.
Json merge_types(const Json& a, const Json& b) {
  const Json left = as_list(a), right = as_list(b);
  Json out = Json::array();
  for (const Json& type : left) {
    if (has(right, type) || (type == "integer" && has(right, "number"))) out.push_back(type);
  }
  if (has(left, "number") && has(right, "integer") && !has(out, "integer")) {
    out.push_back("integer");
  }
  return out;
}

// What is in both lists, or in either.
Json merge_lists(const Json& a, const Json& b, bool either) {
  Json out = either ? as_list(a) : Json::array();
  for (const Json& value : as_list(b)) {
    if (has(as_list(a), value) != either) out.push_back(value);
  }
  return out;
}

const Json& larger(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() && a < b ? b : a;
}
const Json& smaller(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() && b < a ? b : a;
}

// The value of a keyword that both have, other than properties.
Json merge_keyword(const std::string& keyword, const Json& a, const Json& b,
                   const std::string& path) {
  if (a == b || kind_of_keyword(keyword) == KeywordKind::annotation) return a;
  if (keyword == "type") {
    const Json types = merge_types(a, b);
    if (types.empty()) {
      refuse_schema(path, cat("found types ", shown(a.dump()), " and ", shown(b.dump()),
                              ", which must both hold and have nothing in common"));
    }
    return types;
  }
  if (keyword == "enum") return merge_lists(a, b, false);
  if (keyword == "required") return merge_lists(a, b, true);
  if (keyword == "additionalProperties" || keyword == "items") {
    return a == Json(false) || b == Json(false) ? Json(false) : both(a, b);
  }
  if (keyword == "uniqueItems") return a == Json(true) ? a : b;
  if (keyword.starts_with("min") || keyword == "exclusiveMinimum") return larger(a, b);
  if (keyword.starts_with("max") || keyword == "exclusiveMaximum") return smaller(a, b);
  refuse_schema(path, cat("found two different values of ", keyword,
                          " that must both hold, which is not supported; write one of them"));
}

}  // namespace

Json merge_schemas(Json a, const Json& b, const std::string& path) {
  const bool has_properties = a.contains("properties") || b.contains("properties");
  const Json properties = has_properties ? merge_properties(a, b, path) : Json();
  for (const auto& [keyword, value] : b.items()) {
    if (keyword == "properties") continue;
    const auto place = a.find(keyword);
    if (place == a.end()) {
      a[keyword] = value;
    } else {
      *place = merge_keyword(keyword, *place, value, path);
    }
  }
  if (has_properties) a["properties"] = properties;
  return a;
}

}  // namespace sluice::text::grammar
