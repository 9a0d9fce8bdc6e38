// See regex.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/json_schema/regex.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.h"
#include "text/json_schema/regex_class.h"

namespace sluice::text::grammar {
namespace {

class RegexParser {
 public:
  RegexParser(std::string_view pattern, RuleSet& rules, JsonPieces& pieces)
      : scan_(pattern), rules_(rules), pieces_(pieces) {}

  ExprId parse() {
    std::vector<ExprId> alternatives = {anchored_sequence()};
    while (scan_.take('|')) alternatives.push_back(anchored_sequence());
    if (!scan_.at_end()) scan_.refuse("an unmatched )");
    return rules_.choice(std::move(alternatives));
  }

 private:
  // What is not anchored may have anything before or behind it.
  ExprId anchored_sequence() {
    const ExprId anything = rules_.repeat(pieces_.any_character(), 0, kUnbounded);
    std::vector<ExprId> parts;
    if (!scan_.take('^')) parts.push_back(anything);
    parts.push_back(sequence(0));
    if (!scan_.take('$')) parts.push_back(anything);
    if (!scan_.at_end() && scan_.peek() != '|' && scan_.peek() != ')') {
      scan_.refuse("$ that is not at the end");
    }
    return rules_.sequence(std::move(parts));
  }

  ExprId choice(int depth) {
    std::vector<ExprId> alternatives = {sequence(depth)};
    while (scan_.take('|')) alternatives.push_back(sequence(depth));
    return rules_.choice(std::move(alternatives));
  }

  ExprId sequence(int depth) {
    std::vector<ExprId> items;
    while (!scan_.at_end() && scan_.peek() != '|' && scan_.peek() != ')' && scan_.peek() != '$') {
      items.push_back(quantified(atom(depth)));
    }
    return rules_.sequence(std::move(items));
  }

  ExprId atom(int depth) {
    switch (scan_.peek()) {
      case '(':
        return group(depth + 1);
      case '^':
        scan_.refuse("^ that is not at the beginning");
      case '*':
      case '+':
      case '?':
      case '{':
        scan_.refuse("a quantifier with nothing to repeat; write \\ before a plain character");
      case ']':
      case '}':
        scan_.refuse("an unmatched bracket; write \\ before a plain one");
      default:
        return pieces_.character_of(take_character_set(scan_));
    }
  }

  ExprId group(int depth) {
    if (depth > rules_.limits().depth) {
      scan_.refuse(cat("more than ", rules_.limits().depth, " groups inside each other"));
    }
    scan_.take('(');
    if (scan_.take('?')) {
      if (scan_.peek() == '<' && scan_.peek(1) != '=' && scan_.peek(1) != '!') {
        while (!scan_.at_end() && scan_.peek() != '>') scan_.take_character();
        if (!scan_.take('>')) scan_.refuse("a group name without its >");
      } else if (!scan_.take(':')) {
        scan_.refuse("(? that is neither (?: nor (?<name>; lookaround is not supported");
      }
    }
    const ExprId inside = choice(depth);
    if (scan_.peek() == '$' && !scan_.at_end()) scan_.refuse("$ inside a group");
    if (!scan_.take(')')) scan_.refuse("a group without its )");
    return inside;
  }

  ExprId quantified(ExprId item) {
    int min = 0, max = kUnbounded;
    if (scan_.take('*')) {
    } else if (scan_.take('+')) {
      min = 1;
    } else if (scan_.take('?')) {
      max = 1;
    } else if (scan_.take('{')) {
      min = max = count();
      if (scan_.take(',')) max = scan_.peek() == '}' ? kUnbounded : count();
      if (!scan_.take('}')) scan_.refuse("{ that is not {m}, {m,} or {m,n}");
      if (max != kUnbounded && max < min) scan_.refuse("a count {m,n} with m above n");
    } else {
      return item;
    }
    scan_.take('?');
    return rules_.repeat(item, min, max);
  }

  int count() {
    int64_t value = -1;
    while (scan_.peek() >= '0' && scan_.peek() <= '9') {
      value = (value < 0 ? 0 : value * 10) + (scan_.peek() - '0');
      scan_.take_character();
      if (value > rules_.limits().repetition) {
        scan_.refuse(cat("a count above ", rules_.limits().repetition, ", which is the limit"));
      }
    }
    if (value < 0) scan_.refuse("{ that is not {m}, {m,} or {m,n}");
    return static_cast<int>(value);
  }

  RegexScanner scan_;
  RuleSet& rules_;
  JsonPieces& pieces_;
};

}  // namespace

ExprId parse_regex(std::string_view pattern, RuleSet& rules, JsonPieces& pieces) {
  return RegexParser(pattern, rules, pieces).parse();
}

}  // namespace sluice::text::grammar
