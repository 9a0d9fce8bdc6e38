// Reads a JSON schema into rules. Every schema inside becomes a rule of its own, made from a queue,
// so that neither depth nor recursion of schemas is one of our own functions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "text/json_schema/keywords.h"
#include "text/json_schema/number.h"
#include "text/json_schema/pieces.h"

namespace sluice::text::grammar {

class SchemaCompiler {
 public:
  // Both outlive it.
  SchemaCompiler(const Json& root, RuleSet& rules, JsonSpacing spacing);

  RuleId compile();

 private:
  // The value of a schema, as a call of the rule that is or will be made for it.
  ExprId value_of(Json schema, const std::string& path);
  RuleId rule_of(Json schema, const std::string& path);

  ExprId build(const SchemaAt& at);
  ExprId build_choice(const SchemaAt& at, const char* keyword);
  ExprId build_listed(const SchemaAt& at);
  ExprId build_type(const SchemaAt& at, const std::string& type);
  ExprId build_object(const SchemaAt& at);
  ExprId build_array(const SchemaAt& at);
  ExprId build_string(const SchemaAt& at);
  std::vector<std::string> types_of(const SchemaAt& at) const;

  // A schema without $ref and allOf at its top, and without nullable.
  SchemaAt flattened(const SchemaAt& at, int depth);
  // Counts the text of a schema that was made, and throws if there is too much of it.
  void charge(size_t n_bytes, const std::string& path);
  const Json& resolve(const Json& ref, const std::string& path) const;

  // Objects: the names in `required`, and the rule for other names than those.
  std::vector<std::string> required_names(const SchemaAt& at) const;
  ExprId additional_name(const std::vector<std::string>& listed);
  ExprId property(const std::string& name, ExprId value);

  NumberRange range_of(const SchemaAt& at) const;
  bool is_listed_valid(const SchemaAt& at, const Json& value) const;

  const Json& root_;
  RuleSet& rules_;
  JsonPieces pieces_;
  std::map<std::string, RuleId> by_text_;  // rules by the schema they were made for
  size_t n_text_bytes_ = 0;
  struct Pending {
    RuleId rule;
    SchemaAt at;
  };
  std::deque<Pending> pending_;
};

}  // namespace sluice::text::grammar
