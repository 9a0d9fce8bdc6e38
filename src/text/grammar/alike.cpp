// See alike.h. Partition refinement, as for minimal automata, but stopped after so many
// rounds; each round looks only at states with a successor whose class was split in the last one.
// SPDX-License-Identifier: Apache-2.0
#include "text/grammar/alike.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace sluice::text::grammar {
namespace {

class Refinement {
 public:
  Refinement(const Grammar& grammar, size_t max_work)
      : grammar_(grammar), max_work_(max_work), before_(grammar.n_states()) {
    // Without a byte: dead, at a possible end, or neither.
    const auto n_states = static_cast<uint32_t>(grammar.n_states());
    class_size_.assign(3, 0);
    for (uint32_t s = 0; s < n_states; ++s) {
      classes_.push_back(s == Grammar::kDead ? 0 : grammar.accepts(s) ? 2 : 1);
      ++class_size_[classes_[s]];
      if (s != Grammar::kDead) touched_.push_back(s);
    }
    for (uint32_t s = 0; s < n_states; ++s) {
      for (const Grammar::Move move : grammar.moves(s)) add_before(move.to(), s);
      for (const Grammar::Call& call : grammar.calls(s)) add_before(call.back, s);
    }
  }

  const std::vector<uint32_t>& classes() const { return classes_; }

  // Tells apart what one more byte tells apart.
  void refine() {
    std::map<std::pair<uint32_t, std::vector<uint32_t>>, std::vector<uint32_t>> groups;
    for (const uint32_t s : touched_) groups[{classes_[s], signature(s)}].push_back(s);
    std::map<uint32_t, size_t> n_touched;
    for (const auto& [key, states] : groups) n_touched[key.first] += states.size();
    std::vector<uint32_t> renamed;
    for (const auto& [key, states] : groups) {
      // States of the class that were not looked at keep its name, as they look alike still; if
      // there are none, the first group does.
      const uint32_t old = key.first;
      if (n_touched[old] == class_size_[old]) {
        n_touched[old] = SIZE_MAX;
        continue;
      }
      const auto fresh = static_cast<uint32_t>(class_size_.size());
      class_size_.push_back(static_cast<uint32_t>(states.size()));
      for (const uint32_t s : states) classes_[s] = fresh;
      renamed.insert(renamed.end(), states.begin(), states.end());
    }
    touch_before(renamed);
    // Sizes of the old classes are only now what is left of them.
    std::ranges::fill(class_size_, 0);
    for (const uint32_t c : classes_) ++class_size_[c];
  }

  bool is_stable() const { return touched_.empty(); }

  bool is_too_much() const { return work_ > max_work_; }

 private:
  void add_before(uint32_t to, uint32_t from) {
    if (to == Grammar::kDead) return;
    if (before_[to].empty() || before_[to].back() != from) before_[to].push_back(from);
  }

  // The classes of all successors, and of the states calls return to.
  std::vector<uint32_t> signature(uint32_t state) {
    std::vector<uint32_t> key;
    // Runs of equal successors: most rows have few.
    uint32_t run = 0, last = UINT32_MAX;
    for (const Grammar::Move move : grammar_.moves(state)) {
      if (classes_[move.to()] != last) {
        if (run > 0) key.push_back(run);
        key.push_back(last = classes_[move.to()]);
        run = 0;
      }
      ++run;
    }
    key.push_back(run);  // the runs add up to the row, so calls cannot be taken for part of it
    for (const Grammar::Call& call : grammar_.calls(state)) {
      key.push_back(call.entry);
      key.push_back(classes_[call.back]);
    }
    work_ += grammar_.moves(state).size() + key.size();
    return key;
  }

  void touch_before(const std::vector<uint32_t>& renamed) {
    touched_.clear();
    for (const uint32_t s : renamed) {
      touched_.insert(touched_.end(), before_[s].begin(), before_[s].end());
      work_ += before_[s].size();
    }
    std::ranges::sort(touched_);
    touched_.erase(std::unique(touched_.begin(), touched_.end()), touched_.end());
  }

  const Grammar& grammar_;
  const size_t max_work_;
  size_t work_ = 0;
  std::vector<std::vector<uint32_t>> before_;  // by state: those with an edge to it
  std::vector<uint32_t> classes_;
  std::vector<uint32_t> class_size_;
  std::vector<uint32_t> touched_;  // to look at next
};

}  // namespace

std::vector<std::vector<uint32_t>> states_alike(const Grammar& grammar,
                                                std::span<const uint32_t> n_bytes,
                                                size_t max_work) {
  Refinement refinement(grammar, max_work);
  std::vector<std::vector<uint32_t>> out;
  uint32_t length = 0;
  for (const uint32_t wanted : n_bytes) {
    for (; length < wanted && !refinement.is_stable() && !refinement.is_too_much(); ++length) {
      refinement.refine();
    }
    out.push_back(refinement.classes());
    if (refinement.is_too_much()) std::iota(out.back().begin(), out.back().end(), 0u);
  }
  return out;
}

}  // namespace sluice::text::grammar
