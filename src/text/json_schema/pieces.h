// The parts of JSON's own grammar: strings, numbers, separators, any value. Each is made when first
// asked for and then shared.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "text/grammar/rules.h"
#include "text/json_schema/json_schema.h"

namespace sluice::text::grammar {

class JsonPieces {
 public:
  // The rules outlive it.
  JsonPieces(RuleSet& rules, JsonSpacing spacing);

  // A string without its quotes: one character, however JSON allows to write it.
  ExprId any_character();
  // One character of a set, as it is, or with the escape it needs.
  ExprId character_of(const CodePointSet& set);
  ExprId quoted(ExprId content);

  ExprId string();
  ExprId number();
  ExprId integer();
  ExprId boolean();
  ExprId null();
  // Any value, and any of the two kinds that contain others.
  ExprId value();
  ExprId object();
  ExprId array();

  ExprId colon() const { return colon_; }
  ExprId comma() const { return comma_; }
  // Brackets around something that may be empty, with the white space inside of them.
  ExprId in_brackets(const char* open, ExprId content, const char* close);

  // Digits as expressions.
  ExprId digit();
  ExprId digits(int min, int max);

 private:
  ExprId escape();
  ExprId hex(int n_digits);
  // A call of the rule `name`, which `make` makes the first time.
  template <typename Make>
  ExprId shared(const char* name, Make&& make);

  RuleSet& rules_;
  ExprId space_, colon_, comma_;
  std::map<std::string, ExprId> shared_;
  std::map<std::vector<char32_t>, ExprId> escaped_;  // by the characters that need an escape
};

}  // namespace sluice::text::grammar
