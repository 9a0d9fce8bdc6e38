// See victim_queue.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/victim_queue.h"

#include <algorithm>
#include <bit>

namespace sluice::policy {

namespace {

bool below(const VictimQueue::Entry& a, const VictimQueue::Entry& b) {
  return a.value < b.value || (a.value == b.value && a.id < b.id);
}

}  // namespace

VictimQueue::VictimQueue(int n_experts, std::span<const int> pool_of)
    : n_experts_(static_cast<size_t>(n_experts)),
      ids_(pool_of.size() * n_experts_),
      values_(pool_of.size() * n_experts_),
      size_(pool_of.size(), 0),
      lowest_(pool_of.size()),
      place_(pool_of.size(), 0),
      spare_(pool_of.size(), 0),
      pool_of_(pool_of.begin(), pool_of.end()) {
  for (size_t l = 0; l < pool_of.size(); ++l) {
    const auto pool = static_cast<size_t>(pool_of[l]);
    if (pools_.size() <= pool) pools_.resize(pool + 1);
    leaf_.push_back(pools_[pool].layers.size());
    pools_[pool].layers.push_back(static_cast<int>(l));
  }
  for (Pool& pool : pools_) {
    pool.n_leaves = std::bit_ceil(std::max<size_t>(1, pool.layers.size()));
    pool.winners.assign(2 * pool.n_leaves, -1);
    for (const int layer : pool.layers) leaf_[static_cast<size_t>(layer)] += pool.n_leaves;
  }
}

void VictimQueue::set_layer(int layer, int n, int spare) {
  size_[static_cast<size_t>(layer)] = n;
  spare_[static_cast<size_t>(layer)] = spare;
  find_lowest(layer);
}

void VictimQueue::find_lowest(int layer) {
  const auto l = static_cast<size_t>(layer);
  const int* const ids = ids_.data() + first(layer);
  const double* const values = values_.data() + first(layer);
  if (size_[l] == 0) return;
  int place = 0;
  double lowest = values[0];
  for (int i = 1; i < size_[l]; ++i) {
    if (values[i] > lowest) continue;  // most are: one comparison is enough
    if (values[i] == lowest && ids[i] > ids[place]) continue;
    place = i;
    lowest = values[i];
  }
  place_[l] = place;
  lowest_[l] = {lowest, ids[place]};
}

void VictimQueue::play(Pool& pool, size_t node) {
  const int a = pool.winners[2 * node];
  const int b = pool.winners[2 * node + 1];
  const bool takes_b =
      a < 0 || (b >= 0 && below(lowest_[static_cast<size_t>(b)], lowest_[static_cast<size_t>(a)]));
  pool.winners[node] = takes_b ? b : a;
}

void VictimQueue::set_offer(int layer) {
  const auto l = static_cast<size_t>(layer);
  Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  pool.winners[leaf_[l]] = size_[l] > 0 && spare_[l] > 0 ? layer : -1;
}

void VictimQueue::ready() {
  for (Pool& pool : pools_) {
    for (const int layer : pool.layers) set_offer(layer);
    for (size_t node = pool.n_leaves - 1; node >= 1; --node) play(pool, node);
  }
}

// The layer's offer has changed: its matches are played again.
void VictimQueue::settle(int layer) {
  const auto l = static_cast<size_t>(layer);
  Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  set_offer(layer);
  for (size_t node = leaf_[l] / 2; node >= 1; node /= 2) play(pool, node);
}

const VictimQueue::Entry* VictimQueue::lowest_for(int layer) const {
  const auto l = static_cast<size_t>(layer);
  const int rival = pools_[static_cast<size_t>(pool_of_[l])].winners[1];
  if (rival < 0) return size_[l] == 0 ? nullptr : &lowest_[l];
  const Entry& other = lowest_[static_cast<size_t>(rival)];
  return size_[l] == 0 || below(other, lowest_[l]) ? &other : &lowest_[l];
}

void VictimQueue::give_lowest(int layer, int to) {
  const auto l = static_cast<size_t>(layer);
  const size_t last = first(layer) + static_cast<size_t>(--size_[l]);
  ids_[first(layer) + static_cast<size_t>(place_[l])] = ids_[last];
  values_[first(layer) + static_cast<size_t>(place_[l])] = values_[last];
  find_lowest(layer);
  --spare_[l];
  ++spare_[static_cast<size_t>(to)];
  settle(layer);
  if (spare_[static_cast<size_t>(to)] == 1) settle(to);  // it had nothing to spare before
}

}  // namespace sluice::policy
