// What the keywords of JSON schema are to us, and reading their values with errors that say where.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text::grammar {

// Keeps the order of properties.
using Json = nlohmann::ordered_json;

enum class KeywordKind {
  annotation,   // says nothing about which values are valid
  reference,    // $ref
  combination,  // allOf, anyOf, oneOf
  general,      // type, enum, const, nullable
  object,
  array,
  string,
  number,
  unsupported,  // restricts values in a way that cannot be expressed
  unknown,
};

KeywordKind kind_of_keyword(std::string_view keyword);

// A schema, and where it stands: "#/properties/a".
struct SchemaAt {
  Json schema;
  std::string path;
};

// Throws Error: "JSON schema, PATH: TEXT".
[[noreturn]] void refuse_schema(const std::string& path, const std::string& text);

// Throws if a keyword is unsupported or unknown.
void check_keywords(const SchemaAt& at);

// Whether the schema has a keyword of the kind.
bool has_kind(const Json& schema, KeywordKind kind);
// Whether it has anything but annotations, `except` left out.
bool has_assertions(const Json& schema, std::string_view except = "");

// The value of a count keyword (minLength and so on), if it is there; checked against the limit.
std::optional<int> get_count(const SchemaAt& at, const char* keyword, int limit);

// The value of `type`, as a list; empty if there is none.
std::vector<std::string> get_types(const SchemaAt& at);

}  // namespace sluice::text::grammar
