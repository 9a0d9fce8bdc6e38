// Walks the trees of a vocabulary with one state of a grammar, knowing nothing of what the state's
// rule returns to: finds the tokens that stay inside, and the nodes where the rule may be left.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/stack.h"
#include "text/grammar/token_trie.h"

namespace sluice::text::grammar {

class TokenWalk {
 public:
  // Both outlive it.
  TokenWalk(const Grammar& grammar, const TokenTrie& trie);

  // From each of the nodes, in `state`: adds the tokens below the node that are allowed without
  // leaving the state's rule to `tokens`, and the nodes where it may be left, and that have nodes
  // below them, to `exits`. Both without order, with repetitions.
  void run(Grammar::State state, std::span<const uint32_t> nodes, std::vector<TokenId>& tokens,
           std::vector<uint32_t>& exits);

  // For all runs to come; Error beyond.
  void set_effort(Effort effort) { scratch_.effort = effort; }
  void spend(size_t n_steps) { scratch_.effort.spend(n_steps); }
  size_t effort_left() const { return scratch_.effort.n_left(); }

 private:
  // The places after the bytes of a node: places_[begin, end), and how much of stacks_ they need.
  struct Level {
    uint32_t begin = 0;
    uint32_t end = 0;
    StackGraph::Mark mark{};
  };
  // The same for the usual case, a single place in a state that is no end: where bytes move it to
  // another such state, only the state is written; all else is as it was at level `since`.
  struct FastLevel {
    Grammar::State state = Grammar::kDead;  // dead: not that case, see Level
    uint32_t since = 0;
  };

  void walk_below(uint32_t root, std::vector<TokenId>& tokens, std::vector<uint32_t>& exits);
  bool step(size_t level, uint8_t byte);
  bool move_all(uint8_t byte);
  void enter_level(size_t level);
  bool may_leave(size_t level);

  const Grammar& grammar_;
  const TokenTrie& trie_;
  StackGraph stacks_;
  std::vector<Place> places_;
  StackGraph::Scratch scratch_;
  std::vector<Level> levels_;
  std::vector<FastLevel> fast_levels_;
};

}  // namespace sluice::text::grammar
