// What a grammar and a vocabulary say about tokens whatever the stack is, learned when first needed
// and kept: the expensive part of a token mask. docs/decisions/0004-grammar-masks.md describes it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/stack.h"
#include "text/grammar/token_trie.h"
#include "text/grammar/walk.h"

namespace sluice::text::grammar {

// Safe to use from several threads.
class TokenMasks {
 public:
  // `max_bytes`: about how much to remember; beyond, all is forgotten and learned again.
  TokenMasks(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const TokenTrie> trie,
             size_t max_bytes);

  const Grammar& grammar() const { return *grammar_; }
  const TokenTrie& trie() const { return *trie_; }

  // Sets the bits of all tokens that can follow; the others stay as they are. Bits for fewer than
  // n_tokens are a broken promise. Returns the steps it took, by the measure of its Effort.
  size_t add_allowed(const StackGraph& stacks, std::span<const Place> places,
                     std::span<uint64_t> bits);

 private:
  // A set of trie nodes with a number of its own: the roots of a tier, or the exits of some walk.
  using NodeSetId = uint32_t;
  static constexpr NodeSetId kNoNodes = 0;

  // The outcome of a walk. Many tokens are kept as bits, few as a list.
  struct Outcome {
    std::vector<uint64_t> bits;
    std::vector<TokenId> tokens;
    NodeSetId exits = kNoNodes;
  };
  struct Visit {
    Place place;
    NodeSetId nodes;
    friend bool operator==(const Visit&, const Visit&) = default;
  };

  void forget();
  NodeSetId name_set(std::vector<uint32_t> nodes);
  const Outcome& outcome(size_t tier, Grammar::State state, NodeSetId nodes);
  Outcome walk(Grammar::State state, NodeSetId nodes);
  void add_tier(size_t tier, const StackGraph& stacks, std::span<const Place> places,
                std::span<uint64_t> bits);

  // Shared, because a grammar serves many requests and a vocabulary all of them, for as long as
  // any of them runs.
  const std::shared_ptr<const Grammar> grammar_;
  const std::shared_ptr<const TokenTrie> trie_;
  const size_t max_bytes_;

  std::mutex mutex_;                            // guards all below
  std::vector<std::vector<uint32_t>> classes_;  // by tier, then state: states_alike()
  TokenWalk walk_;
  size_t n_bytes_ = 0;
  std::map<std::vector<uint32_t>, NodeSetId> set_names_;
  std::vector<const std::vector<uint32_t>*> sets_;  // by NodeSetId; the keys of set_names_
  std::array<NodeSetId, TokenTrie::kTiers> tier_roots_{};
  std::unordered_map<uint64_t, Outcome> outcomes_;  // by class << 32 | NodeSetId
  std::vector<Visit> visits_;
};

}  // namespace sluice::text::grammar
