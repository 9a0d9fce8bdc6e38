// The places a grammar may be in, all at once, and what each returns to: a graph of return states
// that alternatives share, so that an ambiguous text needs no copies of whole stacks.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "text/grammar/grammar.h"
#include "text/grammar/places.h"

namespace sluice::text::grammar {

class StackGraph {
 public:
  // Returns to nothing: the outermost rule, or whatever a walk does not know about.
  static constexpr StackId kBottom = 0;

  StackGraph() : nodes_(1) {}

  // Memory for one advance() after the other.
  struct Scratch {
    PlaceSet work;
    PlaceSet out;
    std::vector<Place> arrived;
    Effort effort;
  };

  // The places one byte after those in scratch.work: in scratch.out.
  void advance(const Grammar& grammar, uint8_t byte, Scratch& scratch);

  // Whether all rules may end, so that nothing is left to return to.
  bool reaches_bottom(const Grammar& grammar, std::span<const Place> places, Effort& effort) const;

  // Calls visit(back, stack) for each way a stack returns.
  template <typename Visit>
  void for_each_return(StackId stack, Visit&& visit) const {
    for (uint32_t l = nodes_[stack].first_link; l != 0; l = links_[l - 1].next) {
      visit(Place{nodes_[stack].back, links_[l - 1].stack});
    }
  }

  // What advance() added since can be dropped again, as long as no place refers to it.
  struct Mark {
    uint32_t n_nodes, n_links;
  };
  Mark mark() const;
  void drop_since(Mark mark);

  // Forgets what no place needs, and gives equal stacks one name, which may make places equal too.
  void tidy(std::vector<Place>& places);

  size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    Grammar::State back = Grammar::kDead;
    Grammar::State entry = Grammar::kDead;  // of the rule that returns there
    uint32_t first_link = 0;                // 1 + index into links_; 0: none
  };
  struct Link {
    StackId stack = 0;
    uint32_t next = 0;
  };

  void call(const Grammar& grammar, const Grammar::Call& call, StackId stack, size_t step,
            Scratch& scratch);
  // Returns how many links it looked at.
  size_t add_link(StackId node, StackId to);

  std::vector<Node> nodes_;
  std::vector<Link> links_;
};

}  // namespace sluice::text::grammar
