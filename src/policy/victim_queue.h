// Finds who leaves next, for the decisions of one step: every layer has a list of those who may
// leave, and every pool of layers a tournament between those of its layers that may give a slot to
// another. A decision plays one path of the tournament again (logarithmic in the layers) and looks
// once through the list of the layer that gave: at most n_experts numbers side by side, which was
// measured faster than keeping a heap of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::policy {

class VictimQueue {
 public:
  struct Entry {
    double value;
    int id;  // layer * n_experts + expert
  };

  // pool_of: the pool of each layer; layers of a pool may trade slots.
  VictimQueue(int n_experts, std::span<const int> pool_of);

  // Filling it: for every layer write the ids of those who may leave and their values into these,
  // then set_layer() with how many there are and the slots that the layer may give to others; then
  // ready().
  std::span<int> ids(int layer) { return std::span(ids_).subspan(first(layer), n_experts_); }
  std::span<double> values(int layer) {
    return std::span(values_).subspan(first(layer), n_experts_);
  }
  void set_layer(int layer, int n, int spare);
  void ready();

  // The lowest of those who may leave for an expert of `layer`: of the layer itself, and of every
  // layer of its pool that has slots to spare. Null: nobody. Of equal ones, the lower id.
  const Entry* lowest_for(int layer) const;

  // `layer`'s lowest leaves, and an expert of `to` takes its slot.
  void give_lowest(int layer, int to);

 private:
  size_t first(int layer) const { return static_cast<size_t>(layer) * n_experts_; }
  void find_lowest(int layer);
  void set_offer(int layer);
  void settle(int layer);

  // A tournament over the layers of a pool: winners[1] is the layer with the lowest offer, the
  // leaves begin at n_leaves; -1: nobody.
  struct Pool {
    std::vector<int> layers;
    std::vector<int> winners;
    size_t n_leaves = 1;
  };
  void play(Pool& pool, size_t node);

  size_t n_experts_;
  std::vector<int> ids_;        // [n_layers, n_experts]
  std::vector<double> values_;  // [n_layers, n_experts]
  std::vector<int> size_;       // how many may leave, by layer
  std::vector<Entry> lowest_;   // of them, side by side: these are compared most
  std::vector<int> place_;      // of the lowest, in its layer's list
  std::vector<int> spare_;
  std::vector<int> pool_of_;
  std::vector<size_t> leaf_;
  std::vector<Pool> pools_;
};

}  // namespace sluice::policy
