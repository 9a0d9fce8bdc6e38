// See keywords.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/keywords.h"

#include <algorithm>
#include <array>

#include "base/error.h"
#include "text/grammar/code_points.h"

namespace sluice::text::grammar {
namespace {

struct Keyword {
  std::string_view name;
  KeywordKind kind;
};

constexpr std::array kKeywords = {
    Keyword{"title", KeywordKind::annotation},
    Keyword{"description", KeywordKind::annotation},
    Keyword{"default", KeywordKind::annotation},
    Keyword{"example", KeywordKind::annotation},
    Keyword{"examples", KeywordKind::annotation},
    Keyword{"deprecated", KeywordKind::annotation},
    Keyword{"readOnly", KeywordKind::annotation},
    Keyword{"writeOnly", KeywordKind::annotation},
    Keyword{"strict", KeywordKind::annotation},
    Keyword{"discriminator", KeywordKind::annotation},
    Keyword{"externalDocs", KeywordKind::annotation},
    Keyword{"xml", KeywordKind::annotation},
    Keyword{"contentEncoding", KeywordKind::annotation},
    Keyword{"contentMediaType", KeywordKind::annotation},
    Keyword{"contentSchema", KeywordKind::annotation},
    Keyword{"$schema", KeywordKind::annotation},
    Keyword{"$id", KeywordKind::annotation},
    Keyword{"id", KeywordKind::annotation},
    Keyword{"$anchor", KeywordKind::annotation},
    Keyword{"$comment", KeywordKind::annotation},
    Keyword{"$vocabulary", KeywordKind::annotation},
    Keyword{"$defs", KeywordKind::annotation},
    Keyword{"definitions", KeywordKind::annotation},
    Keyword{"$ref", KeywordKind::reference},
    Keyword{"allOf", KeywordKind::combination},
    Keyword{"anyOf", KeywordKind::combination},
    Keyword{"oneOf", KeywordKind::combination},
    Keyword{"type", KeywordKind::general},
    Keyword{"enum", KeywordKind::general},
    Keyword{"const", KeywordKind::general},
    Keyword{"nullable", KeywordKind::general},
    Keyword{"properties", KeywordKind::object},
    Keyword{"required", KeywordKind::object},
    Keyword{"additionalProperties", KeywordKind::object},
    Keyword{"items", KeywordKind::array},
    Keyword{"prefixItems", KeywordKind::array},
    Keyword{"minItems", KeywordKind::array},
    Keyword{"maxItems", KeywordKind::array},
    Keyword{"uniqueItems", KeywordKind::array},
    Keyword{"minLength", KeywordKind::string},
    Keyword{"maxLength", KeywordKind::string},
    Keyword{"pattern", KeywordKind::string},
    Keyword{"format", KeywordKind::string},
    Keyword{"minimum", KeywordKind::number},
    Keyword{"maximum", KeywordKind::number},
    Keyword{"exclusiveMinimum", KeywordKind::number},
    Keyword{"exclusiveMaximum", KeywordKind::number},
    Keyword{"multipleOf", KeywordKind::unsupported},
    Keyword{"not", KeywordKind::unsupported},
    Keyword{"if", KeywordKind::unsupported},
    Keyword{"then", KeywordKind::unsupported},
    Keyword{"else", KeywordKind::unsupported},
    Keyword{"dependencies", KeywordKind::unsupported},
    Keyword{"dependentRequired", KeywordKind::unsupported},
    Keyword{"dependentSchemas", KeywordKind::unsupported},
    Keyword{"patternProperties", KeywordKind::unsupported},
    Keyword{"propertyNames", KeywordKind::unsupported},
    Keyword{"minProperties", KeywordKind::unsupported},
    Keyword{"maxProperties", KeywordKind::unsupported},
    Keyword{"additionalItems", KeywordKind::unsupported},
    Keyword{"contains", KeywordKind::unsupported},
    Keyword{"minContains", KeywordKind::unsupported},
    Keyword{"maxContains", KeywordKind::unsupported},
    Keyword{"unevaluatedItems", KeywordKind::unsupported},
    Keyword{"unevaluatedProperties", KeywordKind::unsupported},
    Keyword{"$dynamicRef", KeywordKind::unsupported},
    Keyword{"$recursiveRef", KeywordKind::unsupported},
};

constexpr std::array<std::string_view, 7> kTypes = {"object",  "array",   "string", "number",
                                                    "integer", "boolean", "null"};

std::string checked_type(const SchemaAt& at, const Json& type) {
  if (!type.is_string() || std::ranges::find(kTypes, type.get<std::string>()) == kTypes.end()) {
    refuse_schema(at.path, cat("found type ", shown(type.dump()),
                               ", expected object, array, string, "
                               "number, integer, boolean or null"));
  }
  return type;
}

}  // namespace

KeywordKind kind_of_keyword(std::string_view keyword) {
  if (keyword.starts_with("x-")) return KeywordKind::annotation;
  const auto found = std::ranges::find(kKeywords, keyword, &Keyword::name);
  return found == kKeywords.end() ? KeywordKind::unknown : found->kind;
}

void refuse_schema(const std::string& path, const std::string& text) {
  throw Error(Errc::bad_request, cat("JSON schema, ", path, ": ", text));
}

void check_keywords(const SchemaAt& at) {
  for (const auto& [keyword, value] : at.schema.items()) {
    const KeywordKind kind = kind_of_keyword(keyword);
    if (kind == KeywordKind::unsupported) {
      refuse_schema(at.path, cat(keyword,
                                 " is not supported, and without it the output could be "
                                 "invalid; express it otherwise or remove it"));
    }
    if (kind == KeywordKind::unknown) {
      refuse_schema(at.path, cat("found the keyword ", shown(keyword),
                                 ", which is unknown; remove it, or begin it with x-"));
    }
  }
}

bool has_kind(const Json& schema, KeywordKind kind) {
  const auto items = schema.items();
  return std::any_of(items.begin(), items.end(),
                     [&](const auto& item) { return kind_of_keyword(item.key()) == kind; });
}

bool has_assertions(const Json& schema, std::string_view except) {
  const auto items = schema.items();
  return std::any_of(items.begin(), items.end(), [&](const auto& item) {
    return item.key() != except && kind_of_keyword(item.key()) != KeywordKind::annotation;
  });
}

std::optional<int> get_count(const SchemaAt& at, const char* keyword, int limit) {
  const auto found = at.schema.find(keyword);
  if (found == at.schema.end()) return std::nullopt;
  // 3.0 is an integer to JSON schema.
  const double value = found->is_number() ? found->get<double>() : -1;
  if (!(value >= 0) || value > limit || value != static_cast<int>(value)) {
    refuse_schema(at.path, cat("found ", keyword, " ", shown(found->dump()),
                               ", expected an integer from 0 to ", limit));
  }
  return static_cast<int>(value);
}

std::vector<std::string> get_types(const SchemaAt& at) {
  const auto found = at.schema.find("type");
  if (found == at.schema.end()) return {};
  std::vector<std::string> types;
  if (found->is_array()) {
    for (const Json& type : *found) types.push_back(checked_type(at, type));
    if (types.empty())
      refuse_schema(at.path, "found an empty list of types, expected at least one");
  } else {
    types.push_back(checked_type(at, *found));
  }
  return types;
}

}  // namespace sluice::text::grammar
