// See inline.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/inline.h"

#include <algorithm>
#include <cstdint>

namespace sluice::text::grammar {
namespace {

constexpr uint64_t kMostNodes = 24;
constexpr uint64_t kTooLarge = 1 << 20;
constexpr size_t kLargeClass = 128;

// Rules of rules of rules: deeper ones are rarely small.
constexpr int kRounds = 4;

class Sizes {
 public:
  explicit Sizes(const RuleSet& rules) : rules_(rules) {}

  // About how many nodes an expression takes, given the sizes of its parts and of the rules.
  uint64_t of(const Expr& expr, const std::vector<uint64_t>& rule_size) const {
    uint64_t sum = 1;
    for (const ExprId child : expr.children) sum += sizes_[static_cast<size_t>(child.value)];
    // What matches nothing keeps its name, for the message about it.
    const bool is_nothing = (expr.kind == ExprKind::choice && expr.children.empty()) ||
                            (expr.kind == ExprKind::characters && expr.set.empty());
    if (is_nothing) return kTooLarge;
    switch (expr.kind) {
      case ExprKind::literal:
        return std::min<uint64_t>(expr.text.size(), kTooLarge);
      case ExprKind::characters:
        return expr.set.size() > kLargeClass ? kTooLarge : expr.set.ranges().size();
      case ExprKind::repeat:
        return std::min(sum * static_cast<uint64_t>(std::max(expr.max, expr.min + 1)), kTooLarge);
      case ExprKind::call:
        return rule_size[static_cast<size_t>(expr.rule.value)];
      case ExprKind::both:
      case ExprKind::without:
        return kTooLarge;
      default:
        return std::min(sum, kTooLarge);
    }
  }

  // Children come before their parents, so one pass is enough.
  void update(const std::vector<uint64_t>& rule_size) {
    sizes_.clear();
    for (size_t i = 0; i < rules_.n_exprs(); ++i) {
      sizes_.push_back(of(rules_[ExprId(static_cast<int32_t>(i))], rule_size));
    }
  }

  uint64_t operator[](ExprId id) const { return sizes_[static_cast<size_t>(id.value)]; }

 private:
  const RuleSet& rules_;
  std::vector<uint64_t> sizes_;
};

}  // namespace

std::vector<bool> rules_to_inline(const RuleSet& rules) {
  std::vector<uint64_t> rule_size(rules.n_rules(), kTooLarge);
  Sizes sizes(rules);
  for (int round = 0; round < kRounds; ++round) {
    sizes.update(rule_size);
    for (size_t r = 0; r < rules.n_rules(); ++r) {
      const auto& expr = rules[RuleId(static_cast<int32_t>(r))].expr;
      const uint64_t size = expr ? sizes[*expr] : kTooLarge;
      if (size <= kMostNodes) rule_size[r] = size;
    }
  }
  std::vector<bool> inlined;
  for (const uint64_t size : rule_size) inlined.push_back(size <= kMostNodes);
  return inlined;
}

}  // namespace sluice::text::grammar
