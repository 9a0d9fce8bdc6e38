// See belady.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/belady.h"

#include <algorithm>
#include <limits>
#include <map>
#include <queue>
#include <utility>

#include "policy/trace/replay_account.h"

namespace sluice::policy {

namespace {

constexpr int kNever = std::numeric_limits<int>::max();

// For every routed expert of every step, in order, the step that uses it next.
std::vector<int> next_uses(const RoutingTrace& trace) {
  const RoutingShape& shape = trace.header.shape;
  size_t n_routed = 0;
  for (const RoutingStep& step : trace.steps) n_routed += step.routed.size();
  std::vector<int> next(n_routed);
  std::vector<int> upcoming(static_cast<size_t>(shape.n_total()), kNever);
  for (size_t s = trace.steps.size(); s-- > 0;) {
    const RoutingStep& step = trace.steps[s];
    n_routed -= step.routed.size();
    for (int l = 0; l < shape.n_layers; ++l) {
      for (int i = step.begin[static_cast<size_t>(l)]; i < step.begin[static_cast<size_t>(l) + 1];
           ++i) {
        const int id = l * shape.n_experts + step.routed[static_cast<size_t>(i)].expert.value;
        next[n_routed + static_cast<size_t>(i)] =
            std::exchange(upcoming[static_cast<size_t>(id)], static_cast<int>(s));
      }
    }
  }
  return next;
}

// What is resident in one pool, the latest next use first. An expert that was used has a newer
// entry, and the old one, now in the past, never comes up before it.
class Pool {
 public:
  int n_free = 0;

  void push(int next_use, int id) { queue_.push({next_use, id}); }
  std::pair<int, int> latest() const { return queue_.empty() ? std::pair(-1, -1) : queue_.top(); }
  void pop() { queue_.pop(); }

 private:
  std::priority_queue<std::pair<int, int>> queue_;  // (next use, id)
};

class Belady {
 public:
  Belady(const RoutingShape& shape, double share, const CostModel& cost, Sharing sharing)
      : shape_(shape),
        account_(shape, cost),
        resident_(static_cast<size_t>(shape.n_total()), false) {
    std::map<uint64_t, size_t> pool_of_size;
    for (const CacheLayer& layer : share_slots(shape, share)) {
      const uint64_t key = sharing == Sharing::per_layer ? pool_of_.size() : layer.expert_bytes;
      const auto [entry, is_new] = pool_of_size.emplace(key, pools_.size());
      if (is_new) pools_.emplace_back();
      pool_of_.push_back(entry->second);
      pools_[entry->second].n_free += layer.n_slots;
    }
  }

  // next: when each of the step's experts is used again.
  void step(const RoutingStep& step, std::span<const int> next) {
    account_.begin_step(step.phase);
    misses_.clear();
    for (int l = 0; l < shape_.n_layers; ++l) {
      const auto first = static_cast<size_t>(step.begin[static_cast<size_t>(l)]);
      look_up(l, step.layer(l), next.subspan(first));
    }
    // The soonest first, so that none that was copied leaves for another of the same step.
    std::sort(misses_.begin(), misses_.end());
    uint64_t n_copies = 0;
    uint64_t bytes = 0;
    for (const auto& [next_use, id] : misses_) {
      if (!admit(id, next_use)) continue;
      ++n_copies;
      bytes += shape_.expert_bytes[static_cast<size_t>(id / shape_.n_experts)];
    }
    account_.end_step(n_copies, bytes);
  }

  ReplayResult result() const { return account_.result(); }

 private:
  Pool& pool(int id) { return pools_[pool_of_[static_cast<size_t>(id / shape_.n_experts)]]; }

  void look_up(int layer, std::span<const RoutedExpert> routed, std::span<const int> next) {
    int n_hits = 0;
    for (size_t i = 0; i < routed.size(); ++i) {
      const int id = layer * shape_.n_experts + routed[i].expert.value;
      if (resident_[static_cast<size_t>(id)]) {
        ++n_hits;
        pool(id).push(next[i], id);
      } else {
        misses_.push_back({next[i], id});
      }
    }
    account_.layer(layer, n_hits, static_cast<int>(routed.size()) - n_hits);
  }

  bool admit(int id, int next_use) {
    if (next_use == kNever) return false;
    Pool& pool = this->pool(id);
    if (pool.n_free > 0) {
      --pool.n_free;
    } else {
      const auto [latest, victim] = pool.latest();
      if (latest <= next_use) return false;
      pool.pop();
      resident_[static_cast<size_t>(victim)] = false;
    }
    resident_[static_cast<size_t>(id)] = true;
    pool.push(next_use, id);
    return true;
  }

  RoutingShape shape_;
  ReplayAccount account_;
  std::vector<size_t> pool_of_;  // by layer
  std::vector<Pool> pools_;
  std::vector<bool> resident_;               // by id
  std::vector<std::pair<int, int>> misses_;  // (next use, id) of the step
};

}  // namespace

ReplayResult replay_belady(const RoutingTrace& trace, double share, const CostModel& cost,
                           Sharing sharing) {
  Belady belady(trace.header.shape, share, cost, sharing);
  const std::vector<int> next = next_uses(trace);
  size_t at = 0;
  for (const RoutingStep& step : trace.steps) {
    belady.step(step, std::span(next).subspan(at, step.routed.size()));
    at += step.routed.size();
  }
  return belady.result();
}

}  // namespace sluice::policy
