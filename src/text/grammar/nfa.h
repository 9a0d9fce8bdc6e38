// Nondeterministic automata over bytes, in which an edge may also be a whole rule; and how
// expressions become them. One automaton holds all rules, each with a start and an end of its own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "text/grammar/rules.h"

namespace sluice::text::grammar {

struct Nfa {
  enum class EdgeKind : uint8_t { empty, bytes, call };
  struct Edge {
    EdgeKind kind = EdgeKind::empty;
    ByteRange bytes;    // of a byte edge
    uint32_t rule = 0;  // of a call: which of `rules`
    uint32_t to = 0;
    int32_t next = -1;  // the next edge of the same node
  };
  struct RulePart {
    uint32_t start = 0;
    uint32_t end = 0;
    RuleId rule;
  };

  std::vector<int32_t> first_edge;  // by node; -1: none
  std::vector<Edge> edges;
  std::vector<RulePart> rules;

  uint32_t n_nodes() const { return static_cast<uint32_t>(first_edge.size()); }
  void add_edge(uint32_t from, Edge edge);
};

// Calls visit(edge) for each edge of a node.
template <typename Visit>
void for_each_edge(const Nfa& nfa, uint32_t node, Visit&& visit) {
  for (int32_t e = nfa.first_edge[node]; e >= 0; e = nfa.edges[static_cast<size_t>(e)].next) {
    visit(nfa.edges[static_cast<size_t>(e)]);
  }
}

class NfaBuilder {
 public:
  // `inlined[rule]`: calls of it are replaced by what it stands for.
  // All three outlive it.
  NfaBuilder(const RuleSet& rules, const std::vector<bool>& inlined, Budget& budget);

  // The automaton of `root`, which is its rule 0, and of all rules it needs.
  Nfa build_rules(RuleId root);

  // An automaton of a single expression, whose calls are all inlined; rule 0.
  Nfa build_regular(ExprId expr);

 private:
  uint32_t add_node();
  void link(uint32_t from, uint32_t to) { nfa_.add_edge(from, {.to = to}); }
  uint32_t part_of(RuleId rule);

  // Each adds paths from one node to another, and leaves no edge into `from` or out of `to`.
  void add_expr(ExprId id, uint32_t from, uint32_t to);
  void add_literal(const std::string& text, uint32_t from, uint32_t to);
  void add_characters(const CodePointSet& set, uint32_t from, uint32_t to);
  void add_sequence(std::span<const ExprId> children, uint32_t from, uint32_t to);
  void add_repeat(const Expr& expr, uint32_t from, uint32_t to);
  void add_list(const Expr& expr, uint32_t from, uint32_t to);
  void add_call(RuleId rule, uint32_t from, uint32_t to);
  void add_product(const Expr& expr, uint32_t from, uint32_t to);

  const RuleSet& rules_;
  const std::vector<bool>& inlined_;
  Budget& budget_;
  bool inline_all_ = false;
  int depth_ = 0;
  Nfa nfa_;
  std::vector<int32_t> parts_;  // by rule: its place in nfa_.rules, or -1
};

}  // namespace sluice::text::grammar
