// See json_schema.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/json_schema.h"

#include <map>
#include <string>

#include "base/error.h"
#include "text/grammar/compile.h"
#include "text/json_schema/compiler.h"

namespace sluice::text {
namespace {

using grammar::Json;

// Keys of one object: the ordered kind of object looks them up one after the other.
constexpr int kMostKeys = 2000;

// A schema in a schema takes two levels of JSON: properties and its name.
constexpr int kLevelsPerSchema = 2;

Json parse(std::string_view text, const GrammarLimits& limits) {
  std::map<int, int> n_keys;  // by depth
  const int most_levels = kLevelsPerSchema * limits.depth;
  const auto check = [&](int depth, Json::parse_event_t event, const Json&) {
    if (depth > most_levels) {
      throw Error(Errc::bad_request, cat("the JSON schema is nested more than ", most_levels,
                                         " deep, which is the limit; use $ref"));
    }
    if (event == Json::parse_event_t::object_start) n_keys[depth + 1] = 0;
    if (event == Json::parse_event_t::key && ++n_keys[depth] > kMostKeys) {
      throw Error(Errc::bad_request, cat("an object in the JSON schema has more than ", kMostKeys,
                                         " members, which is the limit"));
    }
    return true;
  };
  try {
    return Json::parse(text, check);
  } catch (const Json::exception& error) {
    throw Error(Errc::bad_request, cat("the JSON schema is not valid JSON: ", error.what()));
  }
}

}  // namespace

Grammar compile_json_schema(std::string_view schema, const JsonSchemaOptions& options) {
  if (schema.size() > options.limits.source_bytes) {
    throw Error(Errc::bad_request,
                cat("the JSON schema has ", schema.size(), " bytes, ", options.limits.source_bytes,
                    " is the limit; make it smaller"));
  }
  const Json root = parse(schema, options.limits);
  grammar::RuleSet rules(options.limits);
  const grammar::RuleId start = grammar::SchemaCompiler(root, rules, options.spacing).compile();
  return grammar::compile(rules, start);
}

Grammar compile_json_object(const JsonSchemaOptions& options) {
  grammar::RuleSet rules(options.limits);
  grammar::JsonPieces pieces(rules, options.spacing);
  const grammar::RuleId root = rules.declare("root");
  rules.define(root, pieces.object());
  return grammar::compile(rules, root);
}

}  // namespace sluice::text
