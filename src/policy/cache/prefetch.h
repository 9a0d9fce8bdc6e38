// Which experts to copy ahead of their layer: candidates with probabilities in (a later layer's
// router applied to this layer's state), copies in order of expected gain out. Copies go to staging
// slots of their own: nothing in the cache leaves for them, and a staged expert keeps its slot
// until its layer has been routed. Nothing is allocated after construction.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "policy/cache/expert_cache.h"

namespace sluice::policy {

struct PrefetchCandidate {
  ExpertKey key;
  double probability = 0.0;  // that the layer will route it
};

struct PrefetchOptions {
  int n_slots = 0;          // for staging
  uint64_t slot_bytes = 0;  // of the largest expert that is staged
  RoutingShape shape;

  // What a copy costs in uses saved, as in CacheOptions: a candidate less probable does not pay.
  double copy_cost = 0.0;
};

struct PrefetchCopy {
  ExpertKey key;
  SlotId slot;  // a staging slot
  uint64_t bytes = 0;
};

struct PrefetchCounts {
  uint64_t useful_bytes = 0;  // there in time, and routed
  uint64_t late_bytes = 0;    // routed, but not there yet
  uint64_t wasted_bytes = 0;  // not routed
};

class PrefetchPlanner {
 public:
  explicit PrefetchPlanner(const PrefetchOptions& options);

  // The copies to start now, those that gain most for their bytes first; max_bytes in all. Skips
  // what is resident or staged, what is too large for a slot, and what does not pay. At most one
  // candidate for each expert. Valid until the next call.
  std::span<const PrefetchCopy> plan(std::span<const PrefetchCandidate> candidates,
                                     const ExpertCache& cache, uint64_t max_bytes);

  // The copy into the slot has finished.
  void arrived(SlotId slot);

  // Whether the expert is staged and there: the layer may use it.
  bool ready(ExpertKey key) const;

  // The layer's routing is known: its staged experts are counted, and their slots are free as soon
  // as the copies into them have finished.
  void routed(LayerId layer, std::span<const RoutedExpert> routed);

  int n_free() const;
  uint64_t slot_bytes() const { return options_.slot_bytes; }
  const PrefetchCounts& counts() const { return counts_; }

 private:
  enum class State : uint8_t { free, copying, there, draining };
  struct Slot {
    State state = State::free;
    ExpertKey key;
    uint64_t bytes = 0;
  };

  bool staged(ExpertKey key) const;

  PrefetchOptions options_;
  std::vector<Slot> slots_;
  std::vector<PrefetchCandidate> order_;
  std::vector<PrefetchCopy> copies_;
  PrefetchCounts counts_;
};

}  // namespace sluice::policy
