// See masks.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/masks.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "text/grammar/alike.h"

namespace sluice::text::grammar {
namespace {

constexpr size_t kMostWorkForClasses = size_t{1} << 26;

// The Effort for one mask. Ordinary grammars take one or two steps for a node of the trie, and most
// nodes are not even reached; a small vocabulary shall not refuse what a large one does not.
constexpr size_t kStepsPerNode = 64;
constexpr size_t kLeastSteps = size_t{1} << 17;
constexpr size_t kVisitsPerStep = 8;  // that are looked through

// A list of ids takes 32 bits for each, bits take one for every token there is; and setting them
// one by one is slower than OR-ing words. Half of the break-even in memory.
bool worth_bits(size_t n_allowed, size_t n_tokens) { return n_allowed * 64 > n_tokens; }

void set_bit(std::span<uint64_t> bits, TokenId token) {
  bits[static_cast<size_t>(token) / 64] |= uint64_t{1} << (static_cast<size_t>(token) % 64);
}

}  // namespace

TokenMasks::TokenMasks(std::shared_ptr<const Grammar> grammar,
                       std::shared_ptr<const TokenTrie> trie, size_t max_bytes)
    : grammar_(std::move(grammar)),
      trie_(std::move(trie)),
      max_bytes_(max_bytes),
      classes_(states_alike(*grammar_, TokenTrie::kTierBytes, kMostWorkForClasses)),
      walk_(*grammar_, *trie_) {
  classes_.emplace_back(grammar_->n_states());  // tokens of any length: every state for itself
  std::iota(classes_.back().begin(), classes_.back().end(), 0u);
  forget();
}

void TokenMasks::forget() {
  outcomes_.clear();
  set_names_.clear();
  sets_.clear();
  n_bytes_ = 0;
  CHECK(name_set({}) == kNoNodes);
  for (size_t tier = 0; tier < TokenTrie::kTiers; ++tier) {
    const uint32_t root = trie_->root(tier);
    const bool has_tokens = trie_->nodes()[root].end > root + 1;
    tier_roots_[tier] = has_tokens ? name_set({root}) : kNoNodes;
  }
}

TokenMasks::NodeSetId TokenMasks::name_set(std::vector<uint32_t> nodes) {
  const auto id = static_cast<NodeSetId>(sets_.size());
  const auto [place, is_new] = set_names_.try_emplace(std::move(nodes), id);
  if (is_new) {
    sets_.push_back(&place->first);
    n_bytes_ += place->first.size() * sizeof(uint32_t) + 96;
  }
  return place->second;
}

TokenMasks::Outcome TokenMasks::walk(Grammar::State state, NodeSetId nodes) {
  Outcome out;
  std::vector<uint32_t> exits;
  walk_.run(state, *sets_[nodes], out.tokens, exits);
  std::ranges::sort(exits);
  exits.erase(std::unique(exits.begin(), exits.end()), exits.end());
  out.exits = name_set(std::move(exits));
  if (worth_bits(out.tokens.size(), trie_->n_tokens())) {
    out.bits.resize((trie_->n_tokens() + 63) / 64);
    for (const TokenId token : out.tokens) set_bit(out.bits, token);
    out.tokens = {};
  }
  out.tokens.shrink_to_fit();
  n_bytes_ += out.bits.size() * sizeof(uint64_t) + out.tokens.size() * sizeof(TokenId) + 128;
  return out;
}

const TokenMasks::Outcome& TokenMasks::outcome(size_t tier, Grammar::State state, NodeSetId nodes) {
  const uint64_t key = uint64_t{classes_[tier][state]} << 32 | nodes;
  const auto found = outcomes_.find(key);
  if (found != outcomes_.end()) return found->second;
  return outcomes_.emplace(key, walk(state, nodes)).first->second;
}

// What a token does inside the current rule, the outcome says. Where it leaves the rule, it goes on
// in the state the stack returns to, below the nodes where it left.
void TokenMasks::add_tier(size_t tier, const StackGraph& stacks, std::span<const Place> places,
                          std::span<uint64_t> bits) {
  visits_.clear();
  const auto visit = [&](Place place, NodeSetId nodes) {
    const Visit next{place, nodes};
    walk_.spend(1 + visits_.size() / kVisitsPerStep);
    if (nodes != kNoNodes && std::ranges::find(visits_, next) == visits_.end()) {
      visits_.push_back(next);
    }
  };
  for (const Place& place : places) visit(place, tier_roots_[tier]);
  for (size_t i = 0; i < visits_.size(); ++i) {  // grows
    const Visit now = visits_[i];
    const Outcome& found = outcome(tier, now.place.state, now.nodes);
    for (size_t w = 0; w < found.bits.size(); ++w) bits[w] |= found.bits[w];
    for (const TokenId token : found.tokens) set_bit(bits, token);
    if (found.exits == kNoNodes) continue;
    stacks.for_each_return(now.place.stack, [&](Place back) { visit(back, found.exits); });
  }
}

size_t TokenMasks::add_allowed(const StackGraph& stacks, std::span<const Place> places,
                               std::span<uint64_t> bits) {
  CHECK(bits.size() * 64 >= trie_->n_tokens());
  const std::lock_guard lock(mutex_);
  if (n_bytes_ > max_bytes_) forget();
  const size_t most = kLeastSteps + kStepsPerNode * trie_->nodes().size();
  walk_.set_effort(Effort(most));
  for (size_t tier = 0; tier < TokenTrie::kTiers; ++tier) add_tier(tier, stacks, places, bits);
  return most - walk_.effort_left();
}

}  // namespace sluice::text::grammar
