// See victim_queue.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/victim_queue.h"

#include <algorithm>
#include <bit>

namespace sluice::policy {

VictimQueue::VictimQueue(int n_experts, std::span<const int> pool_of)
    : n_experts_(n_experts),
      ids_(pool_of.size() * static_cast<size_t>(n_experts)),
      values_(ids_.size()),
      begin_(pool_of.size() + 1, 0),
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
    pool.offers.resize(2 * pool.n_leaves);
    for (const int layer : pool.layers) leaf_[static_cast<size_t>(layer)] += pool.n_leaves;
  }
}

void VictimQueue::find_lowest(int layer) {
  const auto l = static_cast<size_t>(layer);
  int place = -1;
  double lowest = kNobody;
  for (int i = begin_[l]; i < begin_[l + 1]; ++i) {
    const double value = values_[static_cast<size_t>(i)];
    place = value < lowest ? i : place;
    lowest = std::min(lowest, value);
  }
  place_[l] = place;
  lowest_[l] = {lowest, place < 0 ? -1 : ids_[static_cast<size_t>(place)]};
}

VictimQueue::Offer VictimQueue::offer_of(int layer) const {
  const auto l = static_cast<size_t>(layer);
  return {order_of(spare_[l] > 0 ? lowest_[l].value : kNobody), layer};
}

void VictimQueue::ready(size_t n) {
  for (size_t l = 0, i = 0; l < lowest_.size(); ++l) {
    const int end = (static_cast<int>(l) + 1) * n_experts_;
    while (i < n && ids_[i] < end) ++i;
    begin_[l + 1] = static_cast<int>(i);
    find_lowest(static_cast<int>(l));
  }
  for (Pool& pool : pools_) {
    pool.least = kNobody;
    for (const int layer : pool.layers) {
      const auto l = static_cast<size_t>(layer);
      pool.offers[leaf_[l]] = offer_of(layer);
      pool.least = std::min(pool.least, lowest_[l].value);
    }
    for (size_t node = pool.n_leaves - 1; node >= 1; --node) {
      const Offer* const pair = &pool.offers[2 * node];
      pool.offers[node] = pair[pair[1].order < pair[0].order];
    }
  }
}

// The layer's offer has changed: its matches are played again. Of equal ones the left wins, whose
// layers come first.
void VictimQueue::settle(int layer) {
  const auto l = static_cast<size_t>(layer);
  Offer* const offers = pools_[static_cast<size_t>(pool_of_[l])].offers.data();
  Offer winner = offer_of(layer);
  for (size_t node = leaf_[l]; node > 1; node /= 2) {
    offers[node] = winner;
    const Offer other = offers[node ^ 1];
    const auto on_right = static_cast<int64_t>(node & 1);
    const bool loses = other.order < winner.order + on_right;
    winner.order = loses ? other.order : winner.order;
    winner.layer = loses ? other.layer : winner.layer;
  }
  offers[1] = winner;
}

const VictimQueue::Entry* VictimQueue::lowest_for(int layer) const {
  const auto l = static_cast<size_t>(layer);
  const Offer& rival = pools_[static_cast<size_t>(pool_of_[l])].offers[1];
  const Entry* lowest = &lowest_[l];
  if (rival.order != order_of(kNobody)) {
    const Entry& other = lowest_[static_cast<size_t>(rival.layer)];
    const bool ties = other.value == lowest->value;
    if (other.value < lowest->value || (ties && rival.layer < layer)) lowest = &other;
  }
  return lowest->value == kNobody ? nullptr : lowest;
}

void VictimQueue::give_lowest(int layer, int to) {
  const auto l = static_cast<size_t>(layer);
  values_[static_cast<size_t>(place_[l])] = kNobody;
  find_lowest(layer);
  --spare_[l];
  ++spare_[static_cast<size_t>(to)];
  settle(layer);
  if (spare_[static_cast<size_t>(to)] == 1) settle(to);  // it had nothing to spare before
}

}  // namespace sluice::policy
