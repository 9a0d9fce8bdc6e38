// Merging adjacent pairs of symbols, lowest rank first and leftmost first among equals: what
// byte-level BPE and SentencePiece's BPE have in common. Symbols are numbers; what they stand for
// is the caller's matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::text {

using Symbol = int32_t;

// Rank and result of a merge by its two symbols.
class MergeTable {
 public:
  struct Merge {
    int32_t rank;
    Symbol result;
  };
  static constexpr int32_t kNoRank = INT32_MAX;

  // A pair that is there already keeps its merge.
  void add(Symbol left, Symbol right, Merge merge);
  // rank kNoRank where the pair does not merge.
  Merge find(Symbol left, Symbol right) const;

 private:
  // Open addressing, because every step of every piece asks: at most half of a power of two in use.
  struct Slot {
    uint64_t pair = kFree;
    Merge merge = {kNoRank, 0};
  };
  static constexpr uint64_t kFree = UINT64_MAX;

  size_t slot_of(uint64_t pair) const;
  void grow();

  std::vector<Slot> slots_ = std::vector<Slot>(2);
  size_t n_used_ = 0;
};

// One sequence of symbols while it is merged: n symbols take n log n steps, whatever they are. May
// be used for one sequence after another, and then allocates little.
class MergeSequence {
 public:
  struct Part {
    Symbol symbol;
    uint32_t begin;  // in the text, in bytes
    uint32_t end;
  };

  void clear();
  // The next symbol, which stands for the next n_bytes of the text.
  void add(Symbol symbol, uint32_t n_bytes);
  void merge(const MergeTable& table);
  // What is left, in order.
  template <typename OnPart>
  void for_each(OnPart&& on_part) const {
    for (uint32_t i = nodes_.empty() ? kEnd : 0; i != kEnd; i = nodes_[i].next) {
      const uint32_t next = nodes_[i].next;
      on_part(Part{nodes_[i].symbol, nodes_[i].begin, next == kEnd ? end_ : nodes_[next].begin});
    }
  }

 private:
  static constexpr uint32_t kEnd = UINT32_MAX;  // no node
  struct Node {
    Symbol symbol;
    uint32_t begin;
    uint32_t previous;
    uint32_t next;
    MergeTable::Merge merge;  // with the next node
  };

  bool look_up(uint32_t i, const MergeTable& table);

  std::vector<Node> nodes_;
  std::vector<uint64_t> queue_;  // heap of rank << 32 | node, least first
  uint32_t end_ = 0;
};

}  // namespace sluice::text
