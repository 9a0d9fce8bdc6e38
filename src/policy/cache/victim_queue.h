// Finds who leaves next, for the decisions of one step: every layer has a list of those who may
// leave, and every pool of layers a tournament between those of its layers that may give a slot to
// another. A decision plays one path of the tournament again (logarithmic in the layers) and looks
// once through the list of the layer that gave, which is short: the cache lists only those whose
// value is low enough to matter.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace sluice::policy {

class VictimQueue {
 public:
  static constexpr double kNobody = std::numeric_limits<double>::infinity();

  struct Entry {
    double value = kNobody;
    int id = -1;  // layer * n_experts + expert
  };

  // pool_of: the pool of each layer; layers of a pool may trade slots.
  VictimQueue(int n_experts, std::span<const int> pool_of);

  // Filling it: write the ids of those who may leave, in ascending order, their values, and the
  // slots that each layer may give to others into these; then ready() with how many may leave.
  std::span<int> ids() { return ids_; }
  std::span<double> values() { return values_; }
  std::span<int> spare() { return spare_; }
  void ready(size_t n);

  // Nobody of the pool was worth less when it was filled, whether or not its layer may give.
  double least(int pool) const { return pools_[static_cast<size_t>(pool)].least; }

  // The lowest of those who may leave for an expert of `layer`: of the layer itself, and of every
  // layer of its pool that has slots to spare. Null: nobody. Of equal ones, the lower id.
  const Entry* lowest_for(int layer) const;

  // `layer`'s lowest leaves, and an expert of `to` takes its slot.
  void give_lowest(int layer, int to);

 private:
  static constexpr int64_t order_of(double value) {
    const auto bits = std::bit_cast<int64_t>(value);
    return bits ^ ((bits >> 63) & std::numeric_limits<int64_t>::max());
  }

  // A layer's lowest value, where it may go to another layer; else kNobody. As an integer of the
  // same order, so that a match is one comparison and no branch.
  struct Offer {
    int64_t order = order_of(kNobody);
    int layer = -1;
  };
  // A tournament over the layers of a pool: offers[1] is the lowest, the leaves begin at n_leaves.
  struct Pool {
    std::vector<int> layers;
    std::vector<Offer> offers;
    size_t n_leaves = 1;
    double least = kNobody;
  };

  void find_lowest(int layer);
  Offer offer_of(int layer) const;
  void settle(int layer);

  int n_experts_;
  std::vector<int> ids_;        // [n_layers * n_experts]
  std::vector<double> values_;  // beside them, kNobody: has left
  std::vector<int> begin_;      // [n_layers + 1], where each layer's begin
  std::vector<Entry> lowest_;   // by layer
  std::vector<int> place_;      // of the lowest
  std::vector<int> spare_;      // by layer
  std::vector<int> pool_of_;
  std::vector<size_t> leaf_;
  std::vector<Pool> pools_;
};

}  // namespace sluice::policy
