// What a grammar's automaton can match: which rules match the empty string or nothing at all, and
// which nodes lead to an end. Declared in dfa.h.
// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "text/grammar/dfa.h"

namespace sluice::text::grammar {
namespace {

// Which rules have a path from start to end over edges that `allows`; calls count once their rule
// is known to have one. Each edge is looked at once, so the whole is linear.
template <typename Allows>
std::vector<bool> rules_with_path(const Nfa& nfa, Allows&& allows) {
  std::vector<bool> done(nfa.rules.size(), false), reached(nfa.n_nodes(), false);
  std::vector<std::vector<uint32_t>> waiting(nfa.rules.size());  // targets of calls, by rule
  std::vector<int64_t> rule_of_end(nfa.n_nodes(), -1);
  std::vector<uint32_t> open;
  const auto reach = [&](uint32_t node) {
    if (reached[node]) return;
    reached[node] = true;
    open.push_back(node);
  };
  for (size_t r = 0; r < nfa.rules.size(); ++r) {
    rule_of_end[nfa.rules[r].end] = static_cast<int64_t>(r);
    reach(nfa.rules[r].start);
  }
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    if (rule_of_end[node] >= 0) {
      const auto rule = static_cast<size_t>(rule_of_end[node]);
      done[rule] = true;
      for (const uint32_t target : std::exchange(waiting[rule], {})) reach(target);
    }
    for_each_edge(nfa, node, [&](const Nfa::Edge& edge) {
      if (!allows(edge)) return;
      if (edge.kind == Nfa::EdgeKind::call && !done[edge.rule]) {
        waiting[edge.rule].push_back(edge.to);
      } else {
        reach(edge.to);
      }
    });
  }
  return done;
}

// Nodes from which their rule's end can be reached.
std::vector<bool> live_nodes(const Nfa& nfa, const std::vector<bool>& productive) {
  std::vector<std::vector<uint32_t>> from(nfa.n_nodes());
  for (uint32_t node = 0; node < nfa.n_nodes(); ++node) {
    for_each_edge(nfa, node, [&](const Nfa::Edge& edge) {
      if (edge.kind == Nfa::EdgeKind::call && !productive[edge.rule]) return;
      from[edge.to].push_back(node);
    });
  }
  std::vector<bool> live(nfa.n_nodes(), false);
  std::vector<uint32_t> open;
  for (const Nfa::RulePart& part : nfa.rules) {
    live[part.end] = true;
    open.push_back(part.end);
  }
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    for (const uint32_t source : from[node]) {
      if (live[source]) continue;
      live[source] = true;
      open.push_back(source);
    }
  }
  return live;
}

}  // namespace

NfaFacts analyse(const Nfa& nfa) {
  NfaFacts facts;
  facts.nullable =
      rules_with_path(nfa, [](const Nfa::Edge& edge) { return edge.kind != Nfa::EdgeKind::bytes; });
  facts.productive = rules_with_path(nfa, [](const Nfa::Edge&) { return true; });
  facts.live = live_nodes(nfa, facts.productive);
  return facts;
}

}  // namespace sluice::text::grammar
