// See compile.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/compile.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/error.h"
#include "text/grammar/dfa.h"
#include "text/grammar/inline.h"

namespace sluice::text::grammar {
namespace {

// The rule to blame when nothing matches: one that fails without the help of another.
RuleId first_unproductive(const Nfa& nfa, const std::vector<bool>& productive) {
  std::vector<bool> excused(nfa.rules.size(), false);
  // A rule's nodes are those reached from its start; calls stay inside the caller.
  std::vector<bool> seen(nfa.n_nodes(), false);
  for (size_t r = 0; r < nfa.rules.size(); ++r) {
    std::vector<uint32_t> open = {nfa.rules[r].start};
    while (!open.empty()) {
      const uint32_t node = open.back();
      open.pop_back();
      if (seen[node]) continue;
      seen[node] = true;
      for_each_edge(nfa, node, [&](const Nfa::Edge& edge) {
        if (edge.kind == Nfa::EdgeKind::call && !productive[edge.rule]) excused[r] = true;
        open.push_back(edge.to);
      });
    }
  }
  for (size_t r = 0; r < nfa.rules.size(); ++r) {
    if (!productive[r] && !excused[r]) return nfa.rules[r].rule;
  }
  return nfa.rules[0].rule;
}

}  // namespace

class GrammarMaker {
 public:
  GrammarMaker(const RuleSet& rules, RuleId root)
      : rules_(rules), root_(root), budget_(rules.limits()) {}

  Grammar make() {
    const std::vector<bool> inlined = rules_to_inline(rules_);
    nfa_ = NfaBuilder(rules_, inlined, budget_).build_rules(root_);
    const NfaFacts facts = analyse(nfa_);
    if (!facts.productive[0]) refuse_empty(facts);
    const Nfa* automata[] = {&nfa_};
    dfa_.classes = byte_classes(automata);
    Determiniser determiniser(nfa_, facts, budget_, dfa_);
    for (size_t r = 0; r < nfa_.rules.size(); ++r) {
      starts_.push_back(facts.productive[r] ? determiniser.add_rule(r) : 0);
    }
    order_rules();
    return assemble();
  }

 private:
  [[noreturn]] void refuse_empty(const NfaFacts& facts) const {
    const std::string& name = rules_[first_unproductive(nfa_, facts.productive)].name;
    throw Error(Errc::bad_request,
                cat("nothing can ever match the grammar: ", name,
                    " has no end or contradicts itself; give it an alternative that ends"));
  }

  [[noreturn]] void refuse_cycle(const std::vector<size_t>& path, size_t again) const {
    std::string names;
    for (auto it = std::ranges::find(path, again); it != path.end(); ++it) {
      names += rules_[nfa_.rules[*it].rule].name + " -> ";
    }
    const std::string& name = rules_[nfa_.rules[again].rule].name;
    throw Error(Errc::bad_request,
                cat("left recursion: ", name, " refers to itself before any text (", names, name,
                    "); write the repetition with * or put text first"));
  }

  // Fills order_ with the rules, those that a rule may begin with before it.
  void order_rules() {
    enum : uint8_t { fresh, open, done };
    std::vector<uint8_t> mark(starts_.size(), fresh);
    struct Visit {
      size_t rule, next_call;
    };
    for (size_t root = 0; root < starts_.size(); ++root) {
      if (mark[root] != fresh) continue;
      std::vector<Visit> visits = {{root, 0}};
      std::vector<size_t> path = {root};
      mark[root] = open;
      while (!visits.empty()) {
        Visit& visit = visits.back();
        const std::vector<DfaCall>& calls = dfa_.calls[starts_[visit.rule]];
        if (visit.next_call == calls.size()) {
          mark[visit.rule] = done;
          order_.push_back(visit.rule);
          visits.pop_back();
          path.pop_back();
          continue;
        }
        const size_t callee = calls[visit.next_call++].rule;
        if (mark[callee] == open) refuse_cycle(path, callee);
        if (mark[callee] == done) continue;
        mark[callee] = open;
        visits.push_back({callee, 0});
        path.push_back(callee);
      }
    }
  }

  Grammar assemble() {
    Grammar g;
    g.class_of_ = dfa_.classes.of;
    g.n_classes_ = static_cast<size_t>(dfa_.classes.n_classes);
    g.begin_ = starts_[0];
    // Calls enter a rule where it cannot end at once: a copy of the start if that one accepts.
    std::vector<uint32_t> entries = starts_;
    for (uint32_t& entry : entries) {
      if (!dfa_.accepts[entry]) continue;
      const uint32_t copy = dfa_.n_states();
      const size_t row = entry * g.n_classes_;
      for (size_t c = 0; c < g.n_classes_; ++c) dfa_.next.push_back(uint32_t{dfa_.next[row + c]});
      dfa_.accepts.push_back(false);
      dfa_.calls.emplace_back(std::vector<DfaCall>(dfa_.calls[entry]));
      entry = copy;
    }
    add_first_bytes(g, entries);
    for (const uint32_t to : dfa_.next) g.table_.push_back({to});
    for (uint32_t s = 0; s < dfa_.n_states(); ++s) add_state(g, s, entries);
    g.first_call_.push_back(static_cast<uint32_t>(g.calls_.size()));
    return g;
  }

  void add_first_bytes(Grammar& g, const std::vector<uint32_t>& entries) const {
    g.first_bytes_.resize(starts_.size());
    for (const size_t rule : order_) {
      std::bitset<256>& first = g.first_bytes_[rule];
      for (size_t byte = 0; byte < 256; ++byte) {
        first[byte] = dfa_.successor(entries[rule], dfa_.classes.of[byte]) != Grammar::kDead;
      }
      for (const DfaCall& call : dfa_.calls[entries[rule]]) first |= g.first_bytes_[call.rule];
    }
  }

  void add_state(Grammar& g, uint32_t state, const std::vector<uint32_t>& entries) const {
    uint8_t flags = dfa_.accepts[state] ? Grammar::kAccepts : 0;
    g.first_call_.push_back(static_cast<uint32_t>(g.calls_.size()));
    for (const DfaCall& call : dfa_.calls[state]) {
      // A rule that matches the empty string only has nothing to be called for.
      if (g.first_bytes_[call.rule].none()) continue;
      g.calls_.push_back({entries[call.rule], call.back, call.rule});
      flags |= Grammar::kCalls;
      for (size_t byte = 0; byte < 256; ++byte) {
        const size_t entry = state * g.n_classes_ + g.class_of_[byte];
        if (g.first_bytes_[call.rule].test(byte)) g.table_[entry].bits |= 0x80000000;
      }
    }
    const auto goes_on = [](Grammar::Move move) { return move.to() != Grammar::kDead; };
    if (std::ranges::any_of(g.moves(state), goes_on)) flags |= Grammar::kMoves;
    g.flags_.push_back(flags);
  }

  const RuleSet& rules_;
  const RuleId root_;
  Budget budget_;
  Nfa nfa_;
  Dfa dfa_;
  std::vector<uint32_t> starts_;  // by rule of the automaton
  std::vector<size_t> order_;
};

Grammar compile(const RuleSet& rules, RuleId root) { return GrammarMaker(rules, root).make(); }

}  // namespace sluice::text::grammar
