// The intersection and the difference of two regular expressions' automata. Declared in
// dfa.h.
// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "text/grammar/dfa.h"

namespace sluice::text::grammar {
namespace {

struct Side {
  Dfa dfa;
  uint32_t start = 0;
};

Side determinise(const Nfa& nfa, const ByteClasses& classes, Budget& budget) {
  Side side;
  side.dfa.classes = classes;
  const NfaFacts facts = analyse(nfa);
  side.start = Determiniser(nfa, facts, budget, side.dfa).add_rule(0);
  return side;
}

class Product {
 public:
  Product(const Side& a, const Side& b, bool both, Budget& budget)
      : a_(a), b_(b), both_(both), budget_(budget) {}

  Nfa make(const ByteClasses& classes) {
    const uint32_t start = add_node(), end = add_node();
    out_.rules.push_back({start, end, RuleId()});
    out_.add_edge(start, {.to = node_of(a_.start, b_.start)});
    for (size_t i = 0; i < pairs_.size(); ++i) {  // grows as pairs are met
      const auto [a, b] = pairs_[i];
      const uint32_t node = nodes_.at({a, b});
      if (a_.dfa.accepts[a] && b_.dfa.accepts[b] == both_) out_.add_edge(node, {.to = end});
      add_byte_edges(a, b, node, classes);
    }
    return std::move(out_);
  }

 private:
  uint32_t add_node() {
    out_.first_edge.push_back(-1);
    return out_.n_nodes() - 1;
  }

  uint32_t node_of(uint32_t a, uint32_t b) {
    const auto [place, is_new] = nodes_.try_emplace({a, b}, 0);
    if (is_new) {
      if (out_.n_nodes() >= budget_.limits().states) {
        throw Error(Errc::bad_request,
                    cat("two conditions on one string need more than ", budget_.limits().states,
                        " states together, which is the limit; drop one of them"));
      }
      place->second = add_node();
      pairs_.emplace_back(a, b);
    }
    return place->second;
  }

  void add_byte_edges(uint32_t a, uint32_t b, uint32_t node, const ByteClasses& classes) {
    budget_.spend(static_cast<size_t>(classes.n_classes));
    for (size_t byte = 0; byte < 256;) {
      const size_t c = classes.of[byte];
      size_t last = byte;
      while (last + 1 < 256 && classes.of[last + 1] == c) ++last;
      const uint32_t to_a = a_.dfa.successor(a, c), to_b = b_.dfa.successor(b, c);
      if (to_a != 0 && (to_b != 0 || !both_)) {
        out_.add_edge(node, {.kind = Nfa::EdgeKind::bytes,
                             .bytes = {static_cast<uint8_t>(byte), static_cast<uint8_t>(last)},
                             .to = node_of(to_a, to_b)});
      }
      byte = last + 1;
    }
  }

  const Side& a_;
  const Side& b_;
  const bool both_;
  Budget& budget_;
  Nfa out_;
  std::map<std::pair<uint32_t, uint32_t>, uint32_t> nodes_;
  std::vector<std::pair<uint32_t, uint32_t>> pairs_;
};

}  // namespace

Nfa make_product(const Nfa& a, const Nfa& b, bool both, Budget& budget) {
  const Nfa* automata[] = {&a, &b};
  const ByteClasses classes = byte_classes(automata);
  return Product(determinise(a, classes, budget), determinise(b, classes, budget), both, budget)
      .make(classes);
}

}  // namespace sluice::text::grammar
