// A slow matcher that shares nothing with the compiled one but the parsed rules: it asks of every
// expression where a match that begins here may end, on characters instead of bytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "text/grammar/rules.h"
#include "text/utf8.h"

namespace sluice::text::test {

// For rules without left recursion, and expressions without `list`, `both` and `without`.
class ReferenceMatcher {
 public:
  // All outlive it.
  ReferenceMatcher(const grammar::RuleSet& rules, std::string_view text)
      : rules_(rules), text_(text) {}

  bool matches(grammar::RuleId root) {
    return valid_utf8_length(text_) == text_.size() &&
           ends(*rules_[root].expr, 0).contains(text_.size());
  }

 private:
  using Ends = std::set<size_t>;

  const Ends& ends(grammar::ExprId id, size_t at) {
    const auto key = std::pair(id, at);
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    // Rules that match nothing may still be left-recursive: while in progress, they match nothing.
    known_[key] = {};
    Ends result = find_ends(rules_[id], at);
    return known_[key] = std::move(result);
  }

  Ends find_ends(const grammar::Expr& expr, size_t at) {
    using grammar::ExprKind;
    switch (expr.kind) {
      case ExprKind::literal:
        return text_.substr(at).starts_with(expr.text) ? Ends{at + expr.text.size()} : Ends{};
      case ExprKind::characters: {
        if (at == text_.size()) return {};
        size_t behind = at;
        const char32_t c = grammar::decode_utf8(text_, behind);
        return expr.set.contains(c) ? Ends{behind} : Ends{};
      }
      case ExprKind::sequence: {
        Ends now = {at};
        for (const grammar::ExprId child : expr.children) now = after(child, now);
        return now;
      }
      case ExprKind::choice: {
        Ends all;
        for (const grammar::ExprId child : expr.children) all.merge(Ends(ends(child, at)));
        return all;
      }
      case ExprKind::repeat:
        return repeat_ends(expr, at);
      case ExprKind::call:
        return ends(*rules_[expr.rule].expr, at);
      default:
        ADD_FAILURE() << "the reference knows no such expression";
        return {};
    }
  }

  Ends after(grammar::ExprId child, const Ends& begins) {
    Ends all;
    for (const size_t begin : begins) all.merge(Ends(ends(child, begin)));
    return all;
  }

  Ends repeat_ends(const grammar::Expr& expr, size_t at) {
    Ends now = {at};
    for (int i = 0; i < expr.min; ++i) now = after(expr.children[0], now);
    Ends all = now;
    // More rounds than there are bytes add nothing.
    const int rounds =
        expr.max == grammar::kUnbounded ? static_cast<int>(text_.size()) + 1 : expr.max - expr.min;
    for (int i = 0; i < rounds && !now.empty(); ++i) {
      now = after(expr.children[0], now);
      all.insert(now.begin(), now.end());
    }
    return all;
  }

  const grammar::RuleSet& rules_;
  std::string_view text_;
  std::map<std::pair<grammar::ExprId, size_t>, Ends> known_;
};

}  // namespace sluice::text::test
