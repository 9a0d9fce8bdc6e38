// See prefetch.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/prefetch.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::policy {

PrefetchPlanner::PrefetchPlanner(const PrefetchOptions& options) : options_(options) {
  CHECK(options_.n_slots >= 0);
  slots_.resize(static_cast<size_t>(options_.n_slots));
  copies_.reserve(slots_.size());
  order_.reserve(static_cast<size_t>(options_.shape.n_total()));
}

bool PrefetchPlanner::staged(ExpertKey key) const {
  return std::any_of(slots_.begin(), slots_.end(), [key](const Slot& slot) {
    return (slot.state == State::copying || slot.state == State::there) && slot.key == key;
  });
}

std::span<const PrefetchCopy> PrefetchPlanner::plan(std::span<const PrefetchCandidate> candidates,
                                                    const ExpertCache& cache, uint64_t max_bytes) {
  copies_.clear();
  order_.clear();
  for (const PrefetchCandidate& candidate : candidates) {
    const auto& [layer, expert] = candidate.key;
    // Bytes saved by a use are as many as a copy moves, so the gain for each is this difference.
    if (candidate.probability <= options_.copy_cost) continue;
    if (cache.resident(layer, expert) || staged(candidate.key)) continue;
    order_.push_back(candidate);
  }
  std::sort(order_.begin(), order_.end(),
            [](const PrefetchCandidate& a, const PrefetchCandidate& b) {
              return a.probability != b.probability ? a.probability > b.probability : a.key < b.key;
            });
  auto slot = slots_.begin();
  uint64_t bytes_left = max_bytes;
  for (const PrefetchCandidate& candidate : order_) {
    slot = std::find_if(slot, slots_.end(), [](const Slot& s) { return s.state == State::free; });
    if (slot == slots_.end()) break;
    const uint64_t bytes =
        options_.shape.expert_bytes[static_cast<size_t>(candidate.key.layer.value)];
    if (bytes > bytes_left || bytes > options_.slot_bytes) continue;
    bytes_left -= bytes;
    *slot = {State::copying, candidate.key, bytes};
    copies_.push_back({candidate.key, SlotId(static_cast<int32_t>(slot - slots_.begin())), bytes});
  }
  return copies_;
}

void PrefetchPlanner::arrived(SlotId slot) {
  Slot& s = slots_[static_cast<size_t>(slot.value)];
  CHECK(s.state == State::copying || s.state == State::draining);
  s.state = s.state == State::copying ? State::there : State::free;
}

bool PrefetchPlanner::ready(ExpertKey key) const {
  return std::any_of(slots_.begin(), slots_.end(), [key](const Slot& slot) {
    return slot.state == State::there && slot.key == key;
  });
}

void PrefetchPlanner::routed(LayerId layer, std::span<const RoutedExpert> routed) {
  for (Slot& slot : slots_) {
    const bool is_there = slot.state == State::there;
    if (!(is_there || slot.state == State::copying) || slot.key.layer != layer) continue;
    const bool is_used = std::any_of(routed.begin(), routed.end(), [&slot](const RoutedExpert& r) {
      return r.expert == slot.key.expert;
    });
    uint64_t& count = !is_used   ? counts_.wasted_bytes
                      : is_there ? counts_.useful_bytes
                                 : counts_.late_bytes;
    count += slot.bytes;
    slot.state = is_there ? State::free : State::draining;
  }
}

int PrefetchPlanner::n_free() const {
  return static_cast<int>(std::count_if(
      slots_.begin(), slots_.end(), [](const Slot& slot) { return slot.state == State::free; }));
}

}  // namespace sluice::policy
