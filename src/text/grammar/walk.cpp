// See walk.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/walk.h"

namespace sluice::text::grammar {
namespace {

// Nodes of the trie that take as long as one step of an Effort, where nothing is ambiguous.
constexpr size_t kFastNodesPerStep = 8;

}  // namespace

TokenWalk::TokenWalk(const Grammar& grammar, const TokenTrie& trie)
    : grammar_(grammar),
      trie_(trie),
      levels_(trie.max_depth() + size_t{1}),
      fast_levels_(trie.max_depth() + size_t{1}) {}

void TokenWalk::run(Grammar::State state, std::span<const uint32_t> nodes,
                    std::vector<TokenId>& tokens, std::vector<uint32_t>& exits) {
  stacks_ = StackGraph();
  places_.assign(1, {state, StackGraph::kBottom});
  levels_[0] = {0, 1, stacks_.mark()};
  enter_level(0);
  const bool leaves_at_once = grammar_.accepts(state);
  for (const uint32_t node : nodes) {
    if (leaves_at_once) exits.push_back(node);
    walk_below(node, tokens, exits);
  }
}

// A node that is reached has all its tokens allowed, and tokens stand in the order of the nodes: so
// they are taken in runs that end where a subtree is left out.
void TokenWalk::walk_below(uint32_t root, std::vector<TokenId>& tokens,
                           std::vector<uint32_t>& exits) {
  const std::span<const TokenTrie::Node> nodes = trie_.nodes();
  const uint32_t end = nodes[root].end, base = nodes[root].depth;
  spend((end - root) / kFastNodesPerStep);
  uint32_t run = nodes[root + 1].first_token;
  const auto end_run = [&](uint32_t behind) {
    const auto all = trie_.tokens().begin();
    tokens.insert(tokens.end(), all + run, all + behind);
  };
  const auto leave_out = [&](const TokenTrie::Node& node) {
    end_run(node.first_token);
    run = nodes[node.end].first_token;
    return node.end;
  };
  for (uint32_t i = root + 1; i < end;) {
    const TokenTrie::Node& node = nodes[i];
    const size_t level = node.depth - base;
    const auto byte = static_cast<uint8_t>(node.byte);
    const FastLevel before = fast_levels_[level - 1];
    const Grammar::Move move = grammar_.move(before.state, byte);
    if (before.state != Grammar::kDead && !move.may_call()) {
      if (move.to() == Grammar::kDead) {
        i = leave_out(node);
        continue;
      }
      if (!grammar_.accepts(move.to())) {
        fast_levels_[level] = {move.to(), before.since};
        ++i;
        continue;
      }
    }
    if (step(level, byte)) {
      if (node.end > i + 1 && may_leave(level)) exits.push_back(i);
      ++i;
    } else {
      i = leave_out(node);
    }
  }
  end_run(nodes[end].first_token);
}

// Fills levels_[level] with the places one byte after those of the level before; false if none.
bool TokenWalk::step(size_t level, uint8_t byte) {
  const FastLevel fast = fast_levels_[level - 1];
  const Level before = levels_[fast.since];
  places_.resize(before.end);
  scratch_.work.clear();
  for (uint32_t i = before.begin; i < before.end; ++i) scratch_.work.add(places_[i]);
  if (fast.state != Grammar::kDead) {
    const StackId stack = places_[before.begin].stack;
    scratch_.work.clear();
    scratch_.work.add({fast.state, stack});
  }
  StackGraph::Mark mark = before.mark;
  if (!move_all(byte)) {
    stacks_.drop_since(mark);
    stacks_.advance(grammar_, byte, scratch_);
    mark = stacks_.mark();
  }
  const auto after = scratch_.out.all();
  places_.insert(places_.end(), after.begin(), after.end());
  levels_[level] = {before.end, static_cast<uint32_t>(places_.size()), mark};
  enter_level(level);
  return !after.empty();
}

// Moves the places of scratch_.work, as advance() would, if no calls and no returns are involved;
// false if they may be.
bool TokenWalk::move_all(uint8_t byte) {
  scratch_.out.clear();
  for (const Place& place : scratch_.work.all()) {
    const bool is_inner = place.stack != StackGraph::kBottom;
    const Grammar::Move move = grammar_.move(place.state, byte);
    if (move.may_call() || (is_inner && grammar_.accepts(place.state))) return false;
    if (is_inner && grammar_.only_accepts(move.to())) return false;
    if (move.to() != Grammar::kDead) scratch_.out.add({move.to(), place.stack});
  }
  return true;
}

void TokenWalk::enter_level(size_t level) {
  const Level& here = levels_[level];
  const bool is_fast = here.end - here.begin == 1 && !grammar_.accepts(places_[here.begin].state);
  fast_levels_[level] = {is_fast ? places_[here.begin].state : Grammar::kDead,
                         static_cast<uint32_t>(level)};
}

bool TokenWalk::may_leave(size_t level) {
  const Level& here = levels_[level];
  return stacks_.reaches_bottom(
      grammar_, std::span(places_).subspan(here.begin, here.end - here.begin), scratch_.effort);
}

}  // namespace sluice::text::grammar
