// Reads GBNF into rules; gbnf.h describes the notation.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "text/grammar/gbnf_scanner.h"
#include "text/grammar/rules.h"

namespace sluice::text::grammar {

class GbnfParser {
 public:
  // Both outlive it.
  GbnfParser(std::string_view text, RuleSet& rules) : scan_(text), rules_(rules) {}

  // Reads all of the text and returns its rule `root`.
  RuleId parse();

 private:
  struct NamedRule {
    RuleId id;
    size_t first_use = 0;  // byte of the text
    bool is_defined = false;
  };

  void parse_rule();
  ExprId parse_choice(bool in_group, int depth);
  ExprId parse_sequence(bool in_group, int depth);
  ExprId parse_item(int depth);
  ExprId parse_quantifier(ExprId item);
  ExprId parse_braces(ExprId item);
  ExprId parse_group(int depth);
  ExprId parse_class();
  ExprId parse_literal();
  int parse_count();
  std::string_view parse_name();
  NamedRule& rule_named(std::string_view name, size_t at);

  GbnfScanner scan_;
  RuleSet& rules_;
  std::map<std::string, NamedRule, std::less<>> by_name_;
};

}  // namespace sluice::text::grammar
