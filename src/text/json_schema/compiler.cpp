// See compiler.h. Here: schemas in general. Values of each type are in
// values.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/compiler.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "text/json_schema/merge.h"

namespace sluice::text::grammar {
namespace {

// Of all schemas as text, those inside others counted again: combining schemas can multiply them.
constexpr size_t kMostTextBytes = size_t{8} << 20;

// $ref to $ref, allOf in allOf.
constexpr int kMostCombined = 32;

int decode_percent(const std::string& text, size_t at) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  if (at + 2 >= text.size() || digit(text[at + 1]) < 0 || digit(text[at + 2]) < 0) return -1;
  return digit(text[at + 1]) * 16 + digit(text[at + 2]);
}

// A JSON pointer as it stands in a URI.
std::string decoded(const std::string& pointer) {
  std::string out;
  for (size_t i = 0; i < pointer.size(); ++i) {
    const int byte = pointer[i] == '%' ? decode_percent(pointer, i) : -1;
    out += byte < 0 ? pointer[i] : static_cast<char>(byte);
    if (byte >= 0) i += 2;
  }
  return out;
}

}  // namespace

SchemaCompiler::SchemaCompiler(const Json& root, RuleSet& rules, JsonSpacing spacing)
    : root_(root), rules_(rules), pieces_(rules, spacing) {}

RuleId SchemaCompiler::compile() {
  const RuleId root = rule_of(root_, "#");
  while (!pending_.empty()) {
    const Pending next = std::move(pending_.front());
    pending_.pop_front();
    try {
      rules_.define(next.rule, build(next.at));
    } catch (const Error& error) {
      // Those that do not say where yet.
      if (std::string_view(error.what()).starts_with("JSON schema, ")) throw;
      refuse_schema(next.at.path, error.what());
    }
  }
  return root;
}

ExprId SchemaCompiler::value_of(Json schema, const std::string& path) {
  return rules_.call(rule_of(std::move(schema), path));
}

RuleId SchemaCompiler::rule_of(Json schema, const std::string& path) {
  std::string text = schema.dump();
  const auto found = by_text_.find(text);
  if (found != by_text_.end()) return found->second;
  charge(text.size(), path);
  const RuleId rule = rules_.declare(path);
  by_text_.emplace(std::move(text), rule);
  pending_.push_back({rule, {std::move(schema), path}});
  return rule;
}

void SchemaCompiler::charge(size_t n_bytes, const std::string& path) {
  n_text_bytes_ += n_bytes;
  if (n_text_bytes_ > kMostTextBytes) {
    refuse_schema(path, cat("combined with each other, schemas take more than ", kMostTextBytes,
                            " bytes, which is the limit; simplify $ref, allOf and anyOf"));
  }
}

const Json& SchemaCompiler::resolve(const Json& ref, const std::string& path) const {
  if (!ref.is_string()) refuse_schema(path, "$ref must be a string");
  const auto text = ref.get<std::string>();
  if (text != "#" && !text.starts_with("#/")) {
    refuse_schema(path, cat("found $ref ", shown(text),
                            ", expected one inside the schema, such as #/$defs/name"));
  }
  try {
    return root_.at(Json::json_pointer(decoded(text.substr(1))));
  } catch (const Json::exception&) {
    refuse_schema(path, cat("found $ref ", shown(text), ", but the schema has no such place"));
  }
}

SchemaAt SchemaCompiler::flattened(const SchemaAt& at, int depth) {
  if (depth > kMostCombined) {
    refuse_schema(at.path, cat("$ref and allOf refer to themselves or are nested more than ",
                               kMostCombined, " deep"));
  }
  if (at.schema.is_boolean()) {
    return {at.schema.get<bool>() ? Json::object() : Json{{"enum", Json::array()}}, at.path};
  }
  if (!at.schema.is_object()) {
    refuse_schema(at.path, cat("found ", at.schema.type_name(), ", expected a schema"));
  }
  check_keywords(at);
  SchemaAt out = at;
  if (out.schema.contains("nullable")) {
    // Without a type beside it, it means nothing.
    if (out.schema["nullable"] == Json(true) && out.schema.contains("type")) {
      std::vector<std::string> types = get_types(at);
      if (std::ranges::find(types, "null") == types.end()) types.push_back("null");
      out.schema["type"] = types;
    }
    out.schema.erase("nullable");
  }
  out.schema.erase("$ref");
  out.schema.erase("allOf");
  const auto add = [&](const Json& part, const std::string& path) {
    const SchemaAt flat = flattened({part, path}, depth + 1);
    out.schema = merge_schemas(std::move(out.schema), flat.schema, at.path);
    charge(out.schema.dump().size(), at.path);
  };
  if (at.schema.contains("$ref")) {
    add(resolve(at.schema["$ref"], at.path), shown(at.schema["$ref"].get<std::string>()));
  }
  if (at.schema.contains("allOf")) {
    const Json& parts = at.schema["allOf"];
    if (!parts.is_array()) refuse_schema(at.path, "allOf must be a list of schemas");
    for (size_t i = 0; i < parts.size(); ++i) add(parts[i], cat(at.path, "/allOf/", i));
  }
  return out;
}

ExprId SchemaCompiler::build(const SchemaAt& at) {
  if (at.schema.is_object() && at.schema.contains("$ref") && !has_assertions(at.schema, "$ref")) {
    check_keywords(at);
    const Json& target = resolve(at.schema["$ref"], at.path);
    return value_of(target, shown(at.schema["$ref"].get<std::string>()));
  }
  const SchemaAt flat = flattened(at, 0);
  const Json& schema = flat.schema;
  if (schema.contains("anyOf") && schema.contains("oneOf")) {
    refuse_schema(at.path, "found both anyOf and oneOf, which is not supported; write one of them");
  }
  for (const char* keyword : {"anyOf", "oneOf"}) {
    if (schema.contains(keyword)) return build_choice(flat, keyword);
  }
  if (schema.contains("enum") || schema.contains("const")) return build_listed(flat);
  if (!has_assertions(schema)) return pieces_.value();
  std::vector<ExprId> ways;
  for (const std::string& type : types_of(flat)) ways.push_back(build_type(flat, type));
  return rules_.choice(std::move(ways));
}

// One of several schemas, each together with what stands beside them.
ExprId SchemaCompiler::build_choice(const SchemaAt& at, const char* keyword) {
  const Json& alternatives = at.schema[keyword];
  if (!alternatives.is_array() || alternatives.empty()) {
    refuse_schema(at.path, cat(keyword, " must be a list of at least one schema"));
  }
  Json beside = at.schema;
  beside.erase(keyword);
  const bool is_alone = !has_assertions(beside);
  std::vector<ExprId> ways;
  for (size_t i = 0; i < alternatives.size(); ++i) {
    const std::string path = cat(at.path, "/", keyword, "/", i);
    if (is_alone) {
      ways.push_back(value_of(alternatives[i], path));
    } else {
      const SchemaAt flat = flattened({alternatives[i], path}, 0);
      ways.push_back(value_of(merge_schemas(beside, flat.schema, path), path));
    }
  }
  return rules_.choice(std::move(ways));
}

// The type, or what the keywords are about.
std::vector<std::string> SchemaCompiler::types_of(const SchemaAt& at) const {
  std::vector<std::string> types = get_types(at);
  if (!types.empty()) return types;
  if (has_kind(at.schema, KeywordKind::object)) types.emplace_back("object");
  if (has_kind(at.schema, KeywordKind::array)) types.emplace_back("array");
  if (has_kind(at.schema, KeywordKind::string)) types.emplace_back("string");
  if (has_kind(at.schema, KeywordKind::number)) types.emplace_back("number");
  return types;
}

ExprId SchemaCompiler::build_type(const SchemaAt& at, const std::string& type) {
  if (type == "object") return build_object(at);
  if (type == "array") return build_array(at);
  if (type == "string") return build_string(at);
  if (type == "boolean") return pieces_.boolean();
  if (type == "null") return pieces_.null();
  const NumberRange range = range_of(at);
  if (range.is_empty()) refuse_schema(at.path, "no number lies between the bounds");
  return type == "integer" ? integer_between(range, rules_, pieces_)
                           : number_between(range, rules_, pieces_);
}

}  // namespace sluice::text::grammar
