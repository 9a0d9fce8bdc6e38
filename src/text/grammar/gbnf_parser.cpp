// See gbnf_parser.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/gbnf_parser.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "text/grammar/compile.h"
#include "text/grammar/gbnf.h"

namespace sluice::text {

Grammar compile_gbnf(std::string_view text, const GrammarLimits& limits) {
  if (text.size() > limits.source_bytes) {
    throw Error(Errc::bad_request, cat("the grammar has ", text.size(), " bytes, ",
                                       limits.source_bytes, " is the limit; make it smaller"));
  }
  grammar::RuleSet rules(limits);
  const grammar::RuleId root = grammar::GbnfParser(text, rules).parse();
  return grammar::compile(rules, root);
}

namespace grammar {
namespace {

constexpr int kMostQuantifiers = 4;

}  // namespace

RuleId GbnfParser::parse() {
  for (scan_.skip_space(true); !scan_.at_end(); scan_.skip_space(true)) parse_rule();
  for (const auto& [name, rule] : by_name_) {
    if (!rule.is_defined) {
      scan_.refuse(rule.first_use, cat("found the name ", name, ", for which there is no rule"));
    }
  }
  const auto root = by_name_.find("root");
  if (root == by_name_.end()) {
    scan_.refuse(scan_.at(), "found no rule called root, where every grammar begins; add one");
  }
  return root->second.id;
}

GbnfParser::NamedRule& GbnfParser::rule_named(std::string_view name, size_t at) {
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return found->second;
  const NamedRule rule{rules_.declare(std::string(name)), at, false};
  return by_name_.emplace(name, rule).first->second;
}

std::string_view GbnfParser::parse_name() {
  const std::string_view name = scan_.take_name();
  if (name.empty()) scan_.refuse_found("the name of a rule");
  return name;
}

void GbnfParser::parse_rule() {
  const size_t at = scan_.at();
  const std::string_view name = parse_name();
  NamedRule& rule = rule_named(name, at);
  if (rule.is_defined) scan_.refuse(at, cat("found a second rule called ", name, ", expected one"));
  rule.is_defined = true;
  scan_.skip_space(false);
  if (!scan_.take("::=")) scan_.refuse_found("::=");
  scan_.skip_space(true);
  const ExprId expr = parse_choice(false, 0);
  if (!scan_.at_end() && scan_.peek() != '\n' && scan_.peek() != '\r') {
    scan_.refuse_found("the end of the rule");
  }
  rules_.define(rule.id, expr);
}

ExprId GbnfParser::parse_choice(bool in_group, int depth) {
  std::vector<ExprId> alternatives = {parse_sequence(in_group, depth)};
  while (scan_.bar_follows()) {
    scan_.skip_space(true);
    scan_.take("|");
    scan_.skip_space(true);
    alternatives.push_back(parse_sequence(in_group, depth));
  }
  return rules_.choice(std::move(alternatives));
}

ExprId GbnfParser::parse_sequence(bool in_group, int depth) {
  std::vector<ExprId> items;
  for (scan_.skip_space(in_group); !scan_.at_end(); scan_.skip_space(in_group)) {
    const char c = scan_.peek();
    if (c == '|' || c == ')' || c == '\n' || c == '\r') break;
    items.push_back(parse_item(depth));
  }
  return rules_.sequence(std::move(items));
}

ExprId GbnfParser::parse_item(int depth) {
  const size_t at = scan_.at();
  if (scan_.take("\"")) return parse_quantifier(parse_literal());
  if (scan_.take("[")) return parse_quantifier(parse_class());
  if (scan_.take("(")) return parse_quantifier(parse_group(depth + 1));
  if (scan_.take(".")) return parse_quantifier(rules_.characters(CodePointSet::all()));
  const std::string_view name = scan_.take_name();
  if (name.empty())
    scan_.refuse_found("a literal, a class, a group, a name or the end of the rule");
  const ExprId call = rules_.call(rule_named(name, at).id);
  scan_.skip_space(false);
  if (scan_.take("::=")) {
    scan_.refuse(at, cat("found the rule ", name, " inside another; begin it on a new line"));
  }
  return parse_quantifier(call);
}

// None, one or several: (a{2})* may be written a{2}*.
ExprId GbnfParser::parse_quantifier(ExprId item) {
  for (int n = 0;; ++n) {
    scan_.skip_space(false);
    if (n > kMostQuantifiers) {
      scan_.refuse_found(cat("at most ", kMostQuantifiers, " quantifiers in a row"));
    }
    if (scan_.take("*")) {
      item = rules_.repeat(item, 0, kUnbounded);
    } else if (scan_.take("+")) {
      item = rules_.repeat(item, 1, kUnbounded);
    } else if (scan_.take("?")) {
      item = rules_.optional(item);
    } else if (scan_.take("{")) {
      item = parse_braces(item);
    } else {
      return item;
    }
  }
}

ExprId GbnfParser::parse_braces(ExprId item) {
  const size_t at = scan_.at() - 1;
  scan_.skip_space(false);
  const int min = parse_count();
  scan_.skip_space(false);
  int max = min;
  if (scan_.take(",")) {
    scan_.skip_space(false);
    max = scan_.peek() == '}' ? kUnbounded : parse_count();
    scan_.skip_space(false);
  }
  if (!scan_.take("}")) scan_.refuse_found("} or a second count");
  if (max != kUnbounded && max < min) {
    scan_.refuse(at, cat("found {", min, ",", max, "}, expected the smaller count first"));
  }
  return rules_.repeat(item, min, max);
}

int GbnfParser::parse_count() {
  const size_t at = scan_.at();
  const int limit = rules_.limits().repetition;
  int64_t value = -1;
  while (scan_.peek() >= '0' && scan_.peek() <= '9') {
    value = (value < 0 ? 0 : value * 10) + (scan_.peek() - '0');
    scan_.take_character();
    if (value > limit) {
      scan_.refuse(at, cat("found a count above ", limit, ", which is the limit"));
    }
  }
  if (value < 0) scan_.refuse_found("a count");
  return static_cast<int>(value);
}

ExprId GbnfParser::parse_group(int depth) {
  if (depth > rules_.limits().depth) {
    scan_.refuse_found(cat("at most ", rules_.limits().depth, " groups inside each other"));
  }
  const ExprId group = parse_choice(true, depth);
  scan_.skip_space(true);
  if (!scan_.take(")")) scan_.refuse_found(")");
  return group;
}

ExprId GbnfParser::parse_literal() {
  std::string text;
  while (!scan_.take("\"")) {
    if (scan_.at_end() || scan_.peek() == '\n') scan_.refuse_found("the closing \" of a literal");
    append_utf8(text, scan_.take_character());
  }
  return rules_.literal(text);
}

ExprId GbnfParser::parse_class() {
  const bool negated = scan_.take("^");
  CodePointSet set;
  while (!scan_.take("]")) {
    if (scan_.at_end()) scan_.refuse_found("the closing ] of a class");
    const size_t at = scan_.at();
    const char32_t first = scan_.take_character();
    char32_t last = first;
    if (scan_.peek() == '-' && scan_.peek(1) != ']') {
      scan_.take("-");
      last = scan_.take_character();
    }
    if (last < first) scan_.refuse(at, "found a range that runs backwards");
    set.add(first, last);
  }
  return rules_.characters(negated ? set.negated() : std::move(set));
}

}  // namespace grammar
}  // namespace sluice::text
