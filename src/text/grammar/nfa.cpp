// See nfa.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/nfa.h"

#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "text/grammar/dfa.h"

namespace sluice::text::grammar {
namespace {

// Expressions in expressions, inlined rules included: protects the stack. The parsers' own limits
// keep well below it.
constexpr int kMaxDepth = 2000;

}  // namespace

void Nfa::add_edge(uint32_t from, Edge edge) {
  edge.next = first_edge[from];
  first_edge[from] = static_cast<int32_t>(edges.size());
  edges.push_back(edge);
}

NfaBuilder::NfaBuilder(const RuleSet& rules, const std::vector<bool>& inlined, Budget& budget)
    : rules_(rules), inlined_(inlined), budget_(budget), parts_(rules.n_rules(), -1) {}

uint32_t NfaBuilder::add_node() {
  budget_.spend(1);
  if (nfa_.n_nodes() >= budget_.limits().nodes) {
    throw Error(Errc::bad_request,
                cat("the grammar, with its repetitions written out, has more than ",
                    budget_.limits().nodes, " nodes, which is the limit; use smaller counts"));
  }
  nfa_.first_edge.push_back(-1);
  return nfa_.n_nodes() - 1;
}

uint32_t NfaBuilder::part_of(RuleId rule) {
  int32_t& part = parts_[static_cast<size_t>(rule.value)];
  if (part < 0) {
    part = static_cast<int32_t>(nfa_.rules.size());
    const uint32_t start = add_node();
    nfa_.rules.push_back({start, add_node(), rule});
  }
  return static_cast<uint32_t>(part);
}

Nfa NfaBuilder::build_rules(RuleId root) {
  part_of(root);
  for (size_t i = 0; i < nfa_.rules.size(); ++i) {  // grows as rules are called
    const Nfa::RulePart part = nfa_.rules[i];
    CHECK(rules_[part.rule].expr.has_value());
    add_expr(*rules_[part.rule].expr, part.start, part.end);
  }
  return std::move(nfa_);
}

Nfa NfaBuilder::build_regular(ExprId expr) {
  inline_all_ = true;
  const uint32_t start = add_node(), end = add_node();
  nfa_.rules.push_back({start, end, RuleId()});
  add_expr(expr, start, end);
  return std::move(nfa_);
}

void NfaBuilder::add_expr(ExprId id, uint32_t from, uint32_t to) {
  if (++depth_ > kMaxDepth) {
    throw Error(Errc::bad_request, cat("the grammar is nested more than ", kMaxDepth,
                                       " deep, which is the limit; make it flatter"));
  }
  const Expr& expr = rules_[id];
  switch (expr.kind) {
    case ExprKind::literal:
      add_literal(expr.text, from, to);
      break;
    case ExprKind::characters:
      add_characters(expr.set, from, to);
      break;
    case ExprKind::sequence:
      add_sequence(expr.children, from, to);
      break;
    case ExprKind::choice:
      for (const ExprId child : expr.children) add_expr(child, from, to);
      break;
    case ExprKind::repeat:
      add_repeat(expr, from, to);
      break;
    case ExprKind::call:
      add_call(expr.rule, from, to);
      break;
    case ExprKind::list:
      add_list(expr, from, to);
      break;
    case ExprKind::both:
    case ExprKind::without:
      add_product(expr, from, to);
      break;
  }
  --depth_;
}

void NfaBuilder::add_literal(const std::string& text, uint32_t from, uint32_t to) {
  if (text.empty()) return link(from, to);
  for (size_t i = 0; i < text.size(); ++i) {
    const uint32_t next = i + 1 < text.size() ? add_node() : to;
    const auto byte = static_cast<uint8_t>(text[i]);
    nfa_.add_edge(from, {.kind = Nfa::EdgeKind::bytes, .bytes = {byte, byte}, .to = next});
    from = next;
  }
}

// Sequences that end alike share their last nodes.
void NfaBuilder::add_characters(const CodePointSet& set, uint32_t from, uint32_t to) {
  std::map<std::tuple<uint8_t, uint8_t, uint32_t>, uint32_t> tails;
  for (const CodePointRange& range : set.ranges()) {
    for (const ByteRangeSequence& sequence : utf8_sequences(range)) {
      uint32_t next = to;
      for (size_t i = sequence.n_bytes; i-- > 1;) {
        const ByteRange bytes = sequence.ranges[i];
        const auto [place, is_new] = tails.try_emplace({bytes.first, bytes.last, next}, 0);
        if (is_new) {
          place->second = add_node();
          nfa_.add_edge(place->second, {.kind = Nfa::EdgeKind::bytes, .bytes = bytes, .to = next});
        }
        next = place->second;
      }
      nfa_.add_edge(from, {.kind = Nfa::EdgeKind::bytes, .bytes = sequence.ranges[0], .to = next});
    }
  }
}

void NfaBuilder::add_sequence(std::span<const ExprId> children, uint32_t from, uint32_t to) {
  if (children.empty()) return link(from, to);
  for (size_t i = 0; i < children.size(); ++i) {
    const uint32_t next = i + 1 < children.size() ? add_node() : to;
    add_expr(children[i], from, next);
    from = next;
  }
}

void NfaBuilder::add_repeat(const Expr& expr, uint32_t from, uint32_t to) {
  const ExprId child = expr.children[0];
  for (int i = 0; i < expr.min; ++i) {
    const uint32_t next = add_node();
    add_expr(child, from, next);
    from = next;
  }
  if (expr.max == kUnbounded) {
    const uint32_t again = add_node(), after = add_node();
    link(from, again);
    add_expr(child, again, after);
    link(after, again);
    return link(again, to);
  }
  for (int i = expr.min; i < expr.max; ++i) {
    link(from, to);
    const uint32_t next = add_node();
    add_expr(child, from, next);
    from = next;
  }
  link(from, to);
}

// Two chains of nodes: before item i with no item present so far, and with some present, which
// then need a separator.
void NfaBuilder::add_list(const Expr& expr, uint32_t from, uint32_t to) {
  const ExprId separator = expr.children[0];
  uint32_t none = from, some = add_node();
  for (size_t i = 0; i < expr.presence.size(); ++i) {
    const ExprId item = expr.children[i + 1];
    const bool again = expr.presence[i] == Presence::any_number;
    const uint32_t next_none = add_node(), next_some = add_node();
    const uint32_t with_separator = add_node();
    add_expr(item, none, again ? some : next_some);
    add_expr(separator, some, with_separator);
    add_expr(item, with_separator, again ? some : next_some);
    if (expr.presence[i] != Presence::required) {
      link(none, next_none);
      link(some, next_some);
    }
    none = next_none;
    some = next_some;
  }
  link(none, to);
  link(some, to);
}

void NfaBuilder::add_call(RuleId rule, uint32_t from, uint32_t to) {
  if (inline_all_ || inlined_[static_cast<size_t>(rule.value)]) {
    CHECK(rules_[rule].expr.has_value());
    return add_expr(*rules_[rule].expr, from, to);
  }
  nfa_.add_edge(from, {.kind = Nfa::EdgeKind::call, .rule = part_of(rule), .to = to});
}

void NfaBuilder::add_product(const Expr& expr, uint32_t from, uint32_t to) {
  const Nfa a = NfaBuilder(rules_, inlined_, budget_).build_regular(expr.children[0]);
  const Nfa b = NfaBuilder(rules_, inlined_, budget_).build_regular(expr.children[1]);
  const Nfa product = make_product(a, b, expr.kind == ExprKind::both, budget_);
  const uint32_t base = nfa_.n_nodes();
  for (uint32_t node = 0; node < product.n_nodes(); ++node) add_node();
  for (uint32_t node = 0; node < product.n_nodes(); ++node) {
    for_each_edge(product, node, [&](Nfa::Edge edge) {
      edge.to += base;
      nfa_.add_edge(base + node, edge);
    });
  }
  link(from, base + product.rules[0].start);
  link(base + product.rules[0].end, to);
}

}  // namespace sluice::text::grammar
