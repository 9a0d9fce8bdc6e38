// Makes automata deterministic: the subset construction, with calls as symbols beside the bytes. A
// state then has at most one successor for a byte and one return state for a rule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/limits.h"
#include "text/grammar/nfa.h"

namespace sluice::text::grammar {

// Bytes that no edge tells apart share a class.
struct ByteClasses {
  std::array<uint8_t, 256> of{};
  int n_classes = 1;
};

ByteClasses byte_classes(std::span<const Nfa* const> automata);

struct DfaCall {
  uint32_t rule = 0;  // of the automaton's rules
  uint32_t back = 0;  // the state after it
};

// State 0 is dead: it stands for "no such successor".
struct Dfa {
  ByteClasses classes;
  std::vector<uint32_t> next;  // [n_states, n_classes]
  std::vector<bool> accepts;
  std::vector<std::vector<DfaCall>> calls;

  uint32_t n_states() const { return static_cast<uint32_t>(accepts.size()); }
  uint32_t successor(uint32_t state, size_t byte_class) const {
    return next[state * static_cast<size_t>(classes.n_classes) + byte_class];
  }
};

// Which parts of an automaton matter, found by analyse().
struct NfaFacts {
  std::vector<bool> nullable;    // by rule: matches the empty string
  std::vector<bool> productive;  // by rule: matches anything at all
  std::vector<bool> live;        // by node: its rule's end can be reached
};

NfaFacts analyse(const Nfa& nfa);

class Determiniser {
 public:
  // All four outlive it.
  Determiniser(const Nfa& nfa, const NfaFacts& facts, Budget& budget, Dfa& out);

  // Adds the states of one rule to the Dfa and returns the first one; 0 if nothing matches.
  uint32_t add_rule(size_t rule);

 private:
  struct KeyHash {
    size_t operator()(const std::vector<uint32_t>& key) const;
  };

  uint32_t state_of(std::vector<uint32_t> nodes, uint32_t end);
  void close(std::vector<uint32_t>& nodes);
  void expand(uint32_t state, uint32_t end);

  const Nfa& nfa_;
  const NfaFacts& facts_;
  Budget& budget_;
  Dfa& out_;
  std::vector<uint32_t> seen_;  // by node: the round of close() that met it last
  uint32_t round_ = 0;
  std::vector<std::vector<uint32_t>> targets_;  // by byte class, while expanding a state
  std::unordered_map<std::vector<uint32_t>, uint32_t, KeyHash> states_;
  std::vector<const std::vector<uint32_t>*> nodes_of_;  // by state; the keys of states_
};

// The strings that both automata match or, if not `both`, that a alone matches. Rule 0 each.
Nfa make_product(const Nfa& a, const Nfa& b, bool both, Budget& budget);

}  // namespace sluice::text::grammar
