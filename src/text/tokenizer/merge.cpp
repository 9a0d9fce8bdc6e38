// See merge.h.
// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/merge.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "base/check.h"
#include "base/random.h"

namespace sluice::text {
namespace {

uint64_t join(uint32_t high, uint32_t low) { return static_cast<uint64_t>(high) << 32 | low; }

uint64_t pair_of(Symbol left, Symbol right) {
  return join(static_cast<uint32_t>(left), static_cast<uint32_t>(right));
}

uint64_t entry_of(int32_t rank, uint32_t node) { return join(static_cast<uint32_t>(rank), node); }

}  // namespace

size_t MergeTable::slot_of(uint64_t pair) const {
  size_t slot = mix64(pair) & (slots_.size() - 1);
  while (slots_[slot].pair != pair && slots_[slot].pair != kFree) {
    slot = (slot + 1) & (slots_.size() - 1);
  }
  return slot;
}

void MergeTable::grow() {
  const std::vector<Slot> old = std::exchange(slots_, std::vector<Slot>(slots_.size() * 2));
  for (const Slot& slot : old) {
    if (slot.pair != kFree) slots_[slot_of(slot.pair)] = slot;
  }
}

void MergeTable::add(Symbol left, Symbol right, Merge merge) {
  DCHECK(left >= 0 && right >= 0 && merge.rank < kNoRank);
  Slot& slot = slots_[slot_of(pair_of(left, right))];
  if (slot.pair != kFree) return;
  slot = {pair_of(left, right), merge};
  if (++n_used_ * 2 > slots_.size()) grow();
}

MergeTable::Merge MergeTable::find(Symbol left, Symbol right) const {
  return slots_[slot_of(pair_of(left, right))].merge;
}

void MergeSequence::clear() {
  nodes_.clear();
  queue_.clear();
  end_ = 0;
}

void MergeSequence::add(Symbol symbol, uint32_t n_bytes) {
  const auto i = static_cast<uint32_t>(nodes_.size());
  CHECK(end_ < kEnd - n_bytes);
  if (i > 0) nodes_.back().next = i;
  nodes_.push_back({symbol, end_, i == 0 ? kEnd : i - 1, kEnd, {MergeTable::kNoRank, 0}});
  end_ += n_bytes;
}

// Notes whether the node merges with its next one.
bool MergeSequence::look_up(uint32_t i, const MergeTable& table) {
  Node& node = nodes_[i];
  node.merge.rank = MergeTable::kNoRank;
  if (node.next != kEnd) node.merge = table.find(node.symbol, nodes_[node.next].symbol);
  return node.merge.rank != MergeTable::kNoRank;
}

// An entry of the queue says "this node merges with its next one at this rank", and counts if that
// holds when its turn comes. What was true once and is no more stays in the queue until then.
void MergeSequence::merge(const MergeTable& table) {
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    if (look_up(i, table)) queue_.push_back(entry_of(nodes_[i].merge.rank, i));
  }
  std::ranges::make_heap(queue_, std::greater<>());
  const auto look_up_and_queue = [&](uint32_t i) {
    if (!look_up(i, table)) return;
    queue_.push_back(entry_of(nodes_[i].merge.rank, i));
    std::ranges::push_heap(queue_, std::greater<>());
  };
  while (!queue_.empty()) {
    std::ranges::pop_heap(queue_, std::greater<>());
    const uint64_t entry = queue_.back();
    queue_.pop_back();
    const auto i = static_cast<uint32_t>(entry);
    Node& node = nodes_[i];
    if (entry_of(node.merge.rank, i) != entry) continue;

    Node& gone = nodes_[node.next];
    node.symbol = node.merge.result;
    node.next = gone.next;
    gone.merge.rank = MergeTable::kNoRank;
    if (node.next != kEnd) nodes_[node.next].previous = i;
    look_up_and_queue(i);
    if (node.previous != kEnd) look_up_and_queue(node.previous);
  }
}

}  // namespace sluice::text
