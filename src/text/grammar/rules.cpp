// See rules.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/rules.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace sluice::text::grammar {
namespace {

// Repetitions up to kMostCopies are written out; larger ones call a rule of kChunk repetitions.
constexpr int kMostCopies = 2048;
constexpr int kChunk = 1024;

}  // namespace

ExprId RuleSet::add(Expr expr) {
  if (exprs_.size() >= limits_.parts) {
    throw Error(Errc::bad_request, cat("the grammar has more than ", limits_.parts,
                                       " parts, which is the limit; make it smaller"));
  }
  exprs_.push_back(std::move(expr));
  return ExprId(static_cast<int32_t>(exprs_.size() - 1));
}

ExprId RuleSet::literal(std::string_view text) {
  return add({.kind = ExprKind::literal, .text = std::string(text)});
}

ExprId RuleSet::characters(CodePointSet set) {
  return add({.kind = ExprKind::characters, .set = std::move(set)});
}

ExprId RuleSet::sequence(std::vector<ExprId> children) {
  if (children.size() == 1) return children[0];
  return add({.kind = ExprKind::sequence, .children = std::move(children)});
}

ExprId RuleSet::choice(std::vector<ExprId> children) {
  if (children.size() == 1) return children[0];
  return add({.kind = ExprKind::choice, .children = std::move(children)});
}

ExprId RuleSet::repeat_plainly(ExprId child, int min, int max) {
  if (min == 1 && max == 1) return child;
  return add({.kind = ExprKind::repeat, .children = {child}, .min = min, .max = max});
}

ExprId RuleSet::chunk_of(ExprId child) {
  const auto found = chunks_.find(child);
  if (found != chunks_.end()) return found->second;
  const RuleId rule = declare(cat("(", kChunk, " repetitions)"));
  define(rule, repeat_plainly(child, kChunk, kChunk));
  return chunks_.emplace(child, call(rule)).first->second;
}

// With n = kChunk q + r: up to q - 1 chunks and less than a chunk more, or q chunks and up to r
// more.
ExprId RuleSet::repeat_up_to(ExprId child, int max) {
  if (max <= kMostCopies) return repeat_plainly(child, 0, max);
  const int q = max / kChunk, r = max % kChunk;
  const ExprId chunk = chunk_of(child);
  return choice({sequence({repeat_plainly(chunk, 0, q - 1), repeat_plainly(child, 0, kChunk - 1)}),
                 sequence({repeat_plainly(chunk, q, q), repeat_plainly(child, 0, r)})});
}

ExprId RuleSet::repeat(ExprId child, int min, int max) {
  const int largest = std::max(min, max);
  if (largest > limits_.repetition) {
    throw Error(Errc::bad_request, cat("the grammar repeats something ", largest, " times, ",
                                       limits_.repetition, " is the limit; use a smaller count"));
  }
  CHECK(min >= 0 && (max == kUnbounded || max >= min));
  if (largest <= kMostCopies) return repeat_plainly(child, min, max);
  const ExprId chunks = repeat_plainly(chunk_of(child), min / kChunk, min / kChunk);
  const int rest = min % kChunk;
  if (max == kUnbounded) return sequence({chunks, repeat_plainly(child, rest, kUnbounded)});
  return sequence({chunks, repeat_plainly(child, rest, rest), repeat_up_to(child, max - min)});
}

ExprId RuleSet::list(ExprId separator, std::vector<ExprId> items, std::vector<Presence> presence) {
  CHECK(items.size() == presence.size());
  items.insert(items.begin(), separator);
  return add(
      {.kind = ExprKind::list, .children = std::move(items), .presence = std::move(presence)});
}

ExprId RuleSet::both(ExprId a, ExprId b) {
  return add({.kind = ExprKind::both, .children = {a, b}});
}

ExprId RuleSet::without(ExprId a, ExprId b) {
  return add({.kind = ExprKind::without, .children = {a, b}});
}

ExprId RuleSet::call(RuleId rule) { return add({.kind = ExprKind::call, .rule = rule}); }

RuleId RuleSet::declare(std::string name) {
  if (rules_.size() >= limits_.rules) {
    throw Error(Errc::bad_request, cat("the grammar has more than ", limits_.rules,
                                       " rules, which is the limit; make it smaller"));
  }
  rules_.push_back({std::move(name), std::nullopt});
  return RuleId(static_cast<int32_t>(rules_.size() - 1));
}

void RuleSet::define(RuleId rule, ExprId expr) {
  rules_[static_cast<size_t>(rule.value)].expr = expr;
}

}  // namespace sluice::text::grammar
