// Grammars as expressions: what the parsers of GBNF and of JSON schemas build, and the compiler
// reads. An expression may be used in several places; rules may refer to each other in any order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "text/grammar/code_points.h"
#include "text/grammar/limits.h"

namespace sluice::text::grammar {

using ExprId = Id<struct GrammarExprTag>;
using RuleId = Id<struct GrammarRuleTag>;

enum class ExprKind : uint8_t {
  literal,     // text
  characters,  // one of set
  sequence,    // children in turn; none: the empty string
  choice,      // one of the children; none: nothing matches
  repeat,      // children[0], min to max times
  call,        // rule
  list,        // children[1..], each as presence says, with children[0] between those present
  both,        // what children[0] and children[1] both match; neither may recurse
  without,     // what children[0] matches and children[1] does not; neither may recurse
};

enum class Presence : uint8_t { required, optional, any_number };

constexpr int kUnbounded = -1;

struct Expr {
  ExprKind kind = ExprKind::sequence;
  std::string text;
  CodePointSet set;
  std::vector<ExprId> children;
  std::vector<Presence> presence;  // of children[1..] of a list
  int min = 0;
  int max = 0;  // or kUnbounded
  RuleId rule;
};

struct Rule {
  std::string name;
  std::optional<ExprId> expr;
};

class RuleSet {
 public:
  explicit RuleSet(const GrammarLimits& limits) : limits_(limits) {}

  ExprId literal(std::string_view text);
  ExprId characters(CodePointSet set);
  ExprId sequence(std::vector<ExprId> children);
  ExprId choice(std::vector<ExprId> children);
  // Large counts become calls of a rule for 1024 repetitions, so that they stay cheap.
  ExprId repeat(ExprId child, int min, int max);
  ExprId optional(ExprId child) { return repeat(child, 0, 1); }
  ExprId list(ExprId separator, std::vector<ExprId> items, std::vector<Presence> presence);
  ExprId both(ExprId a, ExprId b);
  ExprId without(ExprId a, ExprId b);
  ExprId call(RuleId rule);

  RuleId declare(std::string name);
  void define(RuleId rule, ExprId expr);

  const Expr& operator[](ExprId id) const { return exprs_[static_cast<size_t>(id.value)]; }
  const Rule& operator[](RuleId id) const { return rules_[static_cast<size_t>(id.value)]; }
  size_t n_exprs() const { return exprs_.size(); }
  size_t n_rules() const { return rules_.size(); }
  const GrammarLimits& limits() const { return limits_; }

 private:
  ExprId add(Expr expr);
  ExprId repeat_plainly(ExprId child, int min, int max);
  ExprId repeat_up_to(ExprId child, int max);
  ExprId chunk_of(ExprId child);

  GrammarLimits limits_;
  std::vector<Expr> exprs_;
  std::vector<Rule> rules_;
  std::map<ExprId, ExprId> chunks_;  // calls of the rules for 1024 repetitions
};

}  // namespace sluice::text::grammar
