// Values of each type for SchemaCompiler (compiler.h): objects, arrays, strings, bounds
// of numbers, and listed values.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string_view>

#include "base/error.h"
#include "text/json_schema/compiler.h"
#include "text/json_schema/regex.h"

namespace sluice::text::grammar {
namespace {

size_t n_code_points(const std::string& text) {
  return static_cast<size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<uint8_t>(c) & 0xc0) != 0x80; }));
}

bool has_type(const Json& value, const std::string& type) {
  if (type == "integer") {
    return value.is_number_integer() ||
           (value.is_number_float() && value.get<double>() == std::floor(value.get<double>()));
  }
  if (type == "number") return value.is_number();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  return type == "object" ? value.is_object() : value.is_array();
}

Decimal decimal_of(const Json& number) {
  if (number.is_number_unsigned()) return Decimal::of(number.get<uint64_t>());
  if (number.is_number_integer()) return Decimal::of(number.get<int64_t>());
  return Decimal::of(number.get<double>());
}

bool is_within(const NumberRange& range, const Decimal& value) {
  const int above = range.low ? compare(value, range.low->value) : 1;
  const int below = range.high ? compare(range.high->value, value) : 1;
  return above >= (range.low && range.low->exclusive ? 1 : 0) &&
         below >= (range.high && range.high->exclusive ? 1 : 0);
}

}  // namespace

NumberRange SchemaCompiler::range_of(const SchemaAt& at) const {
  NumberRange range;
  const auto get = [&](const char* keyword, bool exclusive) -> std::optional<NumberBound> {
    const auto found = at.schema.find(keyword);
    if (found == at.schema.end()) return std::nullopt;
    if (!found->is_number()) {
      refuse_schema(at.path,
                    cat("found ", keyword, " ", shown(found->dump()), ", expected a number"));
    }
    return NumberBound{decimal_of(*found), exclusive};
  };
  const auto tighter = [&](const char* plain, const char* strict, int side) {
    const auto a = get(plain, false), b = get(strict, true);
    if (!a || !b) return a ? a : b;
    return compare(a->value, b->value) * side > 0 ? a : b;
  };
  range.low = tighter("minimum", "exclusiveMinimum", 1);
  range.high = tighter("maximum", "exclusiveMaximum", -1);
  return range;
}

ExprId SchemaCompiler::build_string(const SchemaAt& at) {
  const int limit = rules_.limits().repetition;
  const int min = get_count(at, "minLength", limit).value_or(0);
  const int max = get_count(at, "maxLength", limit).value_or(kUnbounded);
  if (max != kUnbounded && max < min) {
    refuse_schema(at.path, cat("found minLength ", min, " above maxLength ", max));
  }
  std::vector<ExprId> conditions;
  for (const char* keyword : {"pattern", "format"}) {
    const auto found = at.schema.find(keyword);
    if (found == at.schema.end()) continue;
    if (!found->is_string()) refuse_schema(at.path, cat(keyword, " must be a string"));
    auto pattern = found->get<std::string>();
    if (keyword == std::string_view("format")) {
      pattern = pattern_of_format(pattern);
      if (pattern.empty()) {
        refuse_schema(at.path, cat("found format ", shown(found->dump()), ", expected one of ",
                                   known_formats(), "; remove it or use a pattern"));
      }
    }
    conditions.push_back(parse_regex(pattern, rules_, pieces_));
  }
  if (min > 0 || max != kUnbounded) {
    conditions.push_back(rules_.repeat(pieces_.any_character(), min, max));
  }
  if (conditions.empty()) return pieces_.string();
  ExprId content = conditions[0];
  for (size_t i = 1; i < conditions.size(); ++i) content = rules_.both(content, conditions[i]);
  return pieces_.quoted(content);
}

ExprId SchemaCompiler::build_array(const SchemaAt& at) {
  const int limit = rules_.limits().repetition;
  const int min = get_count(at, "minItems", limit).value_or(0);
  int max = get_count(at, "maxItems", limit).value_or(kUnbounded);
  const auto unique = at.schema.find("uniqueItems");
  if (unique != at.schema.end() && *unique != Json(false) && !(max == 0 || max == 1)) {
    refuse_schema(at.path,
                  "uniqueItems is not supported, and without it the output could be "
                  "invalid; remove it");
  }
  const Json prefix = at.schema.value("prefixItems", Json::array());
  if (!prefix.is_array()) refuse_schema(at.path, "prefixItems must be a list of schemas");
  const int n_prefix = static_cast<int>(prefix.size());
  // Behind prefixItems, items that nothing is said about are only written if they must be.
  const bool is_open = prefix.empty() || min > n_prefix;
  const Json items = at.schema.contains("items") ? at.schema["items"] : Json(is_open);
  if (items.is_array()) refuse_schema(at.path, "found a list of items; call it prefixItems");
  if (items == Json(false)) max = max == kUnbounded ? n_prefix : std::min(max, n_prefix);
  if (max != kUnbounded && max < min) {
    refuse_schema(at.path, cat("found minItems ", min, ", but at most ", max, " are possible"));
  }
  const ExprId comma = pieces_.comma();
  const auto with_comma = [&](ExprId item) { return rules_.sequence({comma, item}); };
  // From the end to the beginning: each part says what may follow the item before it.
  ExprId rest = rules_.literal("");
  if (max == kUnbounded || max > n_prefix) {
    const ExprId item = value_of(items, at.path + "/items");
    const int more = max == kUnbounded ? kUnbounded : max - n_prefix;
    const int least = std::max(min - n_prefix, 0);
    if (n_prefix > 0) {
      rest = rules_.repeat(with_comma(item), least, more);
    } else {
      const ExprId others = rules_.repeat(with_comma(item), std::max(least - 1, 0),
                                          more == kUnbounded ? kUnbounded : more - 1);
      rest = rules_.sequence({item, others});
      if (least == 0) rest = rules_.optional(rest);
    }
  }
  for (int i = max == kUnbounded ? n_prefix : std::min(n_prefix, max); i-- > 0;) {
    const ExprId item = value_of(prefix[static_cast<size_t>(i)], cat(at.path, "/prefixItems/", i));
    rest = rules_.sequence({i > 0 ? with_comma(item) : item, rest});
    if (i >= min) rest = rules_.optional(rest);
  }
  return pieces_.in_brackets("[", rest, "]");
}

std::vector<std::string> SchemaCompiler::required_names(const SchemaAt& at) const {
  std::vector<std::string> names;
  const Json required = at.schema.value("required", Json::array());
  const auto is_string = [](const Json& name) { return name.is_string(); };
  if (!required.is_array() || !std::ranges::all_of(required, is_string)) {
    refuse_schema(at.path, "required must be a list of names");
  }
  for (const Json& name : required) names.push_back(name);
  return names;
}

ExprId SchemaCompiler::property(const std::string& name, ExprId value) {
  return rules_.sequence({rules_.literal(Json(name).dump()), pieces_.colon(), value});
}

// Written without escapes, so that a name cannot be a listed one in disguise.
ExprId SchemaCompiler::additional_name(const std::vector<std::string>& listed) {
  const CodePointSet plain = CodePointSet::of("\"\\").add(0, 0x1f).negated();
  const ExprId any = rules_.repeat(rules_.characters(plain), 0, kUnbounded);
  std::vector<ExprId> names;
  for (const std::string& name : listed) names.push_back(rules_.literal(name));
  const RuleId rule = rules_.declare("name of an additional property");
  rules_.define(rule, pieces_.quoted(rules_.without(any, rules_.choice(std::move(names)))));
  return rules_.call(rule);
}

ExprId SchemaCompiler::build_object(const SchemaAt& at) {
  const Json properties = at.schema.value("properties", Json::object());
  if (!properties.is_object()) refuse_schema(at.path, "properties must be an object");
  const std::vector<std::string> required = required_names(at);
  const auto is_required = [&](const std::string& name) {
    return std::ranges::find(required, name) != required.end();
  };
  // Without a word about others, a schema that lists properties means those.
  const bool is_open = properties.empty() && required.empty();
  const Json additional = at.schema.contains("additionalProperties")
                              ? at.schema["additionalProperties"]
                              : Json(is_open);
  std::vector<std::string> names;
  std::vector<ExprId> items;
  std::vector<Presence> presence;
  for (const auto& [name, schema] : properties.items()) {
    names.push_back(name);
    items.push_back(property(name, value_of(schema, cat(at.path, "/properties/", shown(name)))));
    presence.push_back(is_required(name) ? Presence::required : Presence::optional);
  }
  const std::string additional_path = at.path + "/additionalProperties";
  for (const std::string& name : required) {
    if (std::ranges::find(names, name) != names.end()) continue;
    if (at.schema.contains("additionalProperties") && additional == Json(false)) {
      refuse_schema(at.path, cat("required names ", shown(name),
                                 ", which properties does not list and additionalProperties "
                                 "forbids"));
    }
    names.push_back(name);
    const Json schema = additional == Json(false) ? Json(true) : additional;
    items.push_back(property(name, value_of(schema, additional_path)));
    presence.push_back(Presence::required);
  }
  if (additional != Json(false)) {
    items.push_back(rules_.sequence(
        {additional_name(names), pieces_.colon(), value_of(additional, additional_path)}));
    presence.push_back(Presence::any_number);
  }
  return pieces_.in_brackets(
      "{", rules_.list(pieces_.comma(), std::move(items), std::move(presence)), "}");
}

// Whether a value of enum or const passes what stands beside it.
bool SchemaCompiler::is_listed_valid(const SchemaAt& at, const Json& value) const {
  const std::vector<std::string> types = get_types(at);
  const auto fits = [&](const std::string& type) { return has_type(value, type); };
  if (!types.empty() && std::ranges::none_of(types, fits)) return false;
  if (value.is_number()) return is_within(range_of(at), decimal_of(value));
  if (!value.is_string()) return true;
  const int limit = rules_.limits().repetition;
  const size_t length = n_code_points(value.get<std::string>());
  const auto min = get_count(at, "minLength", limit), max = get_count(at, "maxLength", limit);
  return (!min || length >= static_cast<size_t>(*min)) &&
         (!max || length <= static_cast<size_t>(*max));
}

ExprId SchemaCompiler::build_listed(const SchemaAt& at) {
  for (const auto& [keyword, value] : at.schema.items()) {
    const KeywordKind kind = kind_of_keyword(keyword);
    if (kind == KeywordKind::object || kind == KeywordKind::array || keyword == "pattern" ||
        keyword == "format") {
      refuse_schema(at.path, cat("found ", keyword,
                                 " beside enum or const, which is not "
                                 "supported; leave it out"));
    }
  }
  Json values = at.schema.value("enum", Json::array());
  if (!values.is_array()) refuse_schema(at.path, "enum must be a list of values");
  if (at.schema.contains("const")) {
    const Json& only = at.schema["const"];
    const bool is_listed = !at.schema.contains("enum") ||
                           std::find(values.begin(), values.end(), only) != values.end();
    values = is_listed ? Json::array({only}) : Json::array();
  }
  std::vector<ExprId> ways;
  for (const Json& value : values) {
    if (is_listed_valid(at, value)) ways.push_back(rules_.literal(value.dump()));
  }
  return rules_.choice(std::move(ways));
}

}  // namespace sluice::text::grammar
