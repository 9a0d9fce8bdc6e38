// See dfa.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/dfa.h"

#include <algorithm>
#include <bitset>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace sluice::text::grammar {

ByteClasses byte_classes(std::span<const Nfa* const> automata) {
  std::bitset<257> begins;  // a class begins at this byte
  for (const Nfa* nfa : automata) {
    for (const Nfa::Edge& edge : nfa->edges) {
      if (edge.kind != Nfa::EdgeKind::bytes) continue;
      begins.set(edge.bytes.first);
      begins.set(edge.bytes.last + size_t{1});
    }
  }
  ByteClasses classes;
  int current = 0;
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte > 0 && begins.test(byte)) ++current;
    classes.of[byte] = static_cast<uint8_t>(current);
  }
  classes.n_classes = current + 1;
  return classes;
}

size_t Determiniser::KeyHash::operator()(const std::vector<uint32_t>& key) const {
  uint64_t hash = key.size();
  for (const uint32_t node : key) hash = mix64(hash + 0x9e3779b97f4a7c15u + node);
  return hash;
}

Determiniser::Determiniser(const Nfa& nfa, const NfaFacts& facts, Budget& budget, Dfa& out)
    : nfa_(nfa),
      facts_(facts),
      budget_(budget),
      out_(out),
      seen_(nfa.n_nodes(), 0),
      targets_(static_cast<size_t>(out.classes.n_classes)) {
  if (out_.n_states() == 0) {  // the dead state
    out_.next.assign(targets_.size(), 0);
    out_.accepts.push_back(false);
    out_.calls.emplace_back();
  }
}

// Adds what is reached without a byte; keeps the nodes that do something, sorted.
void Determiniser::close(std::vector<uint32_t>& nodes) {
  ++round_;
  std::vector<uint32_t> kept;
  std::vector<uint32_t> open = std::move(nodes);
  const auto reach = [&](uint32_t node) {
    if (seen_[node] == round_ || !facts_.live[node]) return;
    seen_[node] = round_;
    open.push_back(node);
  };
  const std::vector<uint32_t> begin = std::exchange(open, {});
  for (const uint32_t node : begin) reach(node);
  while (!open.empty()) {
    const uint32_t node = open.back();
    open.pop_back();
    bool keep = nfa_.first_edge[node] < 0;  // an end
    for_each_edge(nfa_, node, [&](const Nfa::Edge& edge) {
      budget_.spend(1);
      const bool is_call = edge.kind == Nfa::EdgeKind::call;
      if (edge.kind == Nfa::EdgeKind::empty || (is_call && facts_.nullable[edge.rule])) {
        reach(edge.to);
      }
      keep |= edge.kind != Nfa::EdgeKind::empty;
    });
    if (keep) kept.push_back(node);
  }
  std::ranges::sort(kept);
  nodes = std::move(kept);
}

uint32_t Determiniser::state_of(std::vector<uint32_t> nodes, uint32_t end) {
  close(nodes);
  if (nodes.empty()) return 0;
  budget_.spend(nodes.size());
  const auto [place, is_new] = states_.try_emplace(std::move(nodes), out_.n_states());
  if (!is_new) return place->second;
  if (out_.n_states() >= budget_.limits().states) {
    throw Error(Errc::bad_request, cat("the grammar needs more than ", budget_.limits().states,
                                       " states, which is the limit; use smaller counts"));
  }
  nodes_of_.push_back(&place->first);
  out_.next.resize(out_.next.size() + targets_.size(), 0);
  out_.accepts.push_back(std::ranges::binary_search(place->first, end));
  out_.calls.emplace_back();
  return place->second;
}

void Determiniser::expand(uint32_t state, uint32_t end) {
  for (std::vector<uint32_t>& targets : targets_) targets.clear();
  std::map<uint32_t, std::vector<uint32_t>> called;
  for (const uint32_t node : *nodes_of_[state]) {
    for_each_edge(nfa_, node, [&](const Nfa::Edge& edge) {
      if (!facts_.live[edge.to]) return;
      if (edge.kind == Nfa::EdgeKind::bytes) {
        const size_t last = out_.classes.of[edge.bytes.last];
        for (size_t c = out_.classes.of[edge.bytes.first]; c <= last; ++c) {
          targets_[c].push_back(edge.to);
        }
        budget_.spend(last + 1 - out_.classes.of[edge.bytes.first]);
      } else if (edge.kind == Nfa::EdgeKind::call && facts_.productive[edge.rule]) {
        called[edge.rule].push_back(edge.to);
      }
    });
  }
  const size_t row = state * targets_.size();
  for (size_t c = 0; c < targets_.size(); ++c) {
    // Neighbouring classes mostly lead to the same place.
    const bool as_before = c > 0 && targets_[c] == targets_[c - 1];
    out_.next[row + c] = 0;
    const uint32_t to = as_before ? out_.next[row + c - 1] : state_of(targets_[c], end);
    out_.next[row + c] = to;
  }
  for (auto& [rule, targets] : called) {
    const uint32_t back = state_of(std::move(targets), end);
    out_.calls[state].push_back({rule, back});
  }
}

uint32_t Determiniser::add_rule(size_t rule) {
  states_.clear();
  // States of other rules keep their numbers; only this rule's are looked up again.
  nodes_of_.assign(out_.n_states(), nullptr);
  const Nfa::RulePart& part = nfa_.rules[rule];
  const uint32_t first = state_of({part.start}, part.end);
  if (first == 0) return 0;
  for (uint32_t state = first; state < out_.n_states(); ++state) expand(state, part.end);
  return first;
}

}  // namespace sluice::text::grammar
