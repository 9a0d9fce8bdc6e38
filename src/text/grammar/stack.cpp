// See stack.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/stack.h"

#include <algorithm>
#include <map>
#include <utility>

namespace sluice::text::grammar {

size_t StackGraph::add_link(StackId node, StackId to) {
  size_t n = 0;
  for (uint32_t l = nodes_[node].first_link; l != 0; l = links_[l - 1].next) {
    ++n;
    if (links_[l - 1].stack == to) return n;
  }
  links_.push_back({to, nodes_[node].first_link});
  nodes_[node].first_link = static_cast<uint32_t>(links_.size());
  return n;
}

// Calls of one rule, in one step, that return to one state share a node: whatever the rule matches
// from here, it matches for all of them.
void StackGraph::call(const Grammar& grammar, const Grammar::Call& call, StackId stack, size_t step,
                      Scratch& scratch) {
  // Returning to a mere end is returning to what is behind it: right recursion takes no memory.
  if (grammar.only_accepts(call.back)) return scratch.work.add({call.entry, stack});
  size_t node = step;
  const auto is_same = [&](const Node& n) { return n.back == call.back && n.entry == call.entry; };
  while (node < nodes_.size() && !is_same(nodes_[node])) ++node;
  if (node == nodes_.size()) nodes_.push_back({call.back, call.entry, 0});
  scratch.effort.spend(node - step + add_link(static_cast<StackId>(node), stack));
  scratch.work.add({call.entry, static_cast<StackId>(node)});
}

void StackGraph::advance(const Grammar& grammar, uint8_t byte, Scratch& scratch) {
  PlaceSet& work = scratch.work;
  PlaceSet& out = scratch.out;
  std::vector<Place>& arrived = scratch.arrived;
  Effort& effort = scratch.effort;
  const size_t step = nodes_.size();
  const auto add_returns = [&](StackId stack, PlaceSet& to) {
    for_each_return(stack, [&](Place back) {
      effort.spend(1);
      to.add(back);
    });
  };
  arrived.clear();
  for (size_t i = 0; i < work.size(); ++i) {  // grows
    const Place place = work[i];
    effort.spend(1);
    const Grammar::Move move = grammar.move(place.state, byte);
    if (move.to() != Grammar::kDead) arrived.push_back({move.to(), place.stack});
    if (move.may_call()) {
      for (const Grammar::Call& next : grammar.calls(place.state)) {
        if (grammar.can_begin(next.rule, byte)) call(grammar, next, place.stack, step, scratch);
      }
    }
    if (grammar.accepts(place.state)) add_returns(place.stack, work);
  }
  // Only now do all stacks have all their links, so that a rule at its end can be left for good.
  out.clear();
  for (const Place& place : arrived) {
    if (grammar.only_accepts(place.state) && place.stack != kBottom) {
      add_returns(place.stack, out);
    } else {
      out.add(place);
    }
  }
}

bool StackGraph::reaches_bottom(const Grammar& grammar, std::span<const Place> places,
                                Effort& effort) const {
  const auto ends = [&](const Place& place) { return grammar.accepts(place.state); };
  bool any_ends = false;
  for (const Place& place : places) {
    if (!ends(place)) continue;
    if (place.stack == kBottom) return true;
    any_ends = true;
  }
  if (!any_ends) return false;
  PlaceSet work;
  for (const Place& place : places) {
    if (ends(place)) work.add(place);
  }
  for (size_t i = 0; i < work.size(); ++i) {  // grows
    if (work[i].stack == kBottom) return true;
    for_each_return(work[i].stack, [&](Place back) {
      effort.spend(1);
      if (ends(back)) work.add(back);
    });
  }
  return false;
}

StackGraph::Mark StackGraph::mark() const {
  return {static_cast<uint32_t>(nodes_.size()), static_cast<uint32_t>(links_.size())};
}

void StackGraph::drop_since(Mark mark) {
  nodes_.resize(mark.n_nodes);
  links_.resize(mark.n_links);
}

void StackGraph::tidy(std::vector<Place>& places) {
  StackGraph out;
  std::vector<StackId> name(nodes_.size(), 0);  // in `out`; 0: none yet
  std::map<std::pair<Grammar::State, std::vector<StackId>>, StackId> known;
  // Depth first, a node after all it returns to. The graph has no cycles.
  std::vector<StackId> open;
  for (const Place& place : places) open.push_back(place.stack);
  while (!open.empty()) {
    const StackId node = open.back();
    const size_t n_open = open.size();
    if (node != kBottom && name[node] == 0) {
      for_each_return(node, [&](Place back) {
        if (back.stack != kBottom && name[back.stack] == 0) open.push_back(back.stack);
      });
      if (open.size() > n_open) continue;
      std::vector<StackId> returns;
      for_each_return(node, [&](Place back) { returns.push_back(name[back.stack]); });
      std::ranges::sort(returns);
      returns.erase(std::unique(returns.begin(), returns.end()), returns.end());
      const auto id = static_cast<StackId>(out.nodes_.size());
      const auto [place, is_new] = known.try_emplace({nodes_[node].back, returns}, id);
      name[node] = place->second;
      if (is_new) {
        out.nodes_.push_back({nodes_[node].back, Grammar::kDead, 0});
        for (const StackId to : returns) out.add_link(id, to);
      }
    }
    open.pop_back();
  }
  PlaceSet renamed;
  for (const Place& place : places) renamed.add({place.state, name[place.stack]});
  places.assign(renamed.all().begin(), renamed.all().end());
  *this = std::move(out);
}

}  // namespace sluice::text::grammar
