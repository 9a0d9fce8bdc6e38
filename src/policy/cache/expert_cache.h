// Which experts are in VRAM, and which one leaves when another enters. Pure bookkeeping: a recorded
// routing trace replays to the same decisions anywhere.
//
// A step is begin_step(), touch() for each layer as its routing becomes known, end_step(). Copies
// are made between steps only, so an expert that end_step() admits is a hit from the next step on.
// Layers whose experts have the same size form a pool: each keeps a floor of its own slots, the
// rest goes where it is worth most. No expert of the step just done ever leaves for another.
// After construction nothing is allocated. A step takes one pass over the residents, and each
// decision of it logarithmic time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "policy/cache/expert_cache_trials.h"
#include "policy/cache/replacement.h"
#include "policy/cache/victim_queue.h"
#include "policy/trace/routing.h"
#include "policy/trace/routing_profile.h"

namespace sluice::policy {

using SlotId = Id<struct SlotTag>;  // counts from 0 in each pool

struct CacheLayer {
  uint64_t expert_bytes = 0;
  int n_slots = 0;      // its share, at most n_experts; what is above the floor it may lose or gain
  bool pinned = false;  // all experts, always
};

struct CacheOptions {
  PolicyKind policy = PolicyKind::mixture;
  int n_experts = 0;  // of every layer
  std::vector<CacheLayer> layers;
  uint64_t max_copy_bytes = std::numeric_limits<uint64_t>::max();  // per step

  // What a copy costs, in units of what one use of a resident expert saves. The
  // default policy copies where the uses it expects until eviction, less those
  // of the victim, are worth more; in prefill, whose link carries experts
  // anyway, copies cost nothing. 0: hits alone count.
  double copy_cost = 0.0;
  double wait_cost = 0.0;  // where it is higher: of a copy that the step does not hide
};

// Slots for `share` (0 to 1) of all experts: each size gets that share of its own, spread evenly
// over its layers.
std::vector<CacheLayer> share_slots(const RoutingShape& shape, double share);

// One copy: `in` takes the slot, which `out` held, or nobody.
struct Move {
  ExpertKey in;
  ExpertKey out;
  bool evicts = false;
  int pool = 0;
  SlotId slot;
};

struct CacheCounts {
  uint64_t n_lookups = 0;
  uint64_t n_hits = 0;
  uint64_t n_copies = 0;
  uint64_t copied_bytes = 0;
};

// What is loaded at the start into slots that no profile has an expert for. With `any` a first
// prompt finds its share of experts. A text is learnt as quickly (trials that made such experts
// leave as if their slots were free: hits within 0.4 % either way).
enum class Unprofiled { none, any };

class ExpertCache {
 public:
  explicit ExpertCache(const CacheOptions& options);

  // What to load before the first step: pinned layers, where there is a profile the experts used
  // most, and then others. Valid until the next call. Call it once, before the first step.
  std::span<const Move> fill(const RoutingProfile* profile = nullptr,
                             Unprofiled others = Unprofiled::none);

  // A step of n_rows tokens: one in plain decode, more in batches and prefill chunks.
  void begin_step(Phase phase, int n_rows = 1);

  // One row's experts in a layer, best first. Layers come in ascending order, each with all its
  // rows. Returns how many were resident.
  int touch(LayerId layer, std::span<const RoutedExpert> routed);

  // The copies to make before the next step, most valuable first. Valid until
  // the next call. hidden_bytes: what the link moves while a step like this one
  // lasts. Copies beyond that are waited for.
  std::span<const Move> end_step(uint64_t hidden_bytes = std::numeric_limits<uint64_t>::max());

  bool resident(LayerId layer, ExpertId expert) const {
    return slot_[static_cast<size_t>(id_of(layer.value, expert.value))] >= 0;
  }
  SlotId slot(LayerId layer, ExpertId expert) const {  // it must be resident
    return SlotId(slot_[static_cast<size_t>(id_of(layer.value, expert.value))]);
  }
  int pool(LayerId layer) const { return pool_of_[static_cast<size_t>(layer.value)]; }
  int n_pools() const { return static_cast<int>(pools_.size()); }
  int n_slots(int pool) const { return pools_[static_cast<size_t>(pool)].n_slots; }
  int n_resident(LayerId layer) const { return n_resident_[static_cast<size_t>(layer.value)]; }

  const CacheCounts& counts() const { return counts_; }

  // Steps in which each expert was used, for RoutingProfile::add_run, and the steps there were.
  std::span<const uint32_t> uses() const { return uses_; }
  uint64_t n_steps() const { return step_; }

 private:
  struct Pool {
    int n_slots = 0;
    int n_reserved = 0;      // free slots that layers below their floor have a right to
    std::vector<int> free_;  // the next one last
  };
  struct Miss {
    double value;
    int id;
  };

  int id_of(int layer, int expert) const { return layer * n_experts_ + expert; }
  int layer_of(int id) const {
    return static_cast<int>(static_cast<uint64_t>(id) * layers_per_id_ >> kFraction);
  }
  ExpertKey key_of(int id) const {
    return {LayerId(layer_of(id)), ExpertId(id - id_of(layer_of(id), 0))};
  }
  static bool has(const std::vector<uint64_t>& set, int id) {
    return ((set[static_cast<size_t>(id) / 64] >> (id % 64)) & 1) != 0;
  }
  static void flip(std::vector<uint64_t>& set, int id) {
    set[static_cast<size_t>(id) / 64] ^= uint64_t{1} << (id % 64);
  }

  void make_pools();
  void fill_by(const RoutingProfile& profile);
  void fill_evenly();
  void admit_misses();
  void list_misses();
  void sort_misses();
  void line_up_residents(double ceiling);
  const VictimQueue::Entry* find_victim(int layer, double newcomer);
  bool is_worth_it(int id, double value, const VictimQueue::Entry* victim);
  void admit(int id, double value);
  void take_slot(int id, int victim);
  bool has_free_slot(int layer) const;

  CacheOptions options_;
  int n_experts_;
  std::vector<int> pool_of_;  // by layer
  std::vector<int> floor_;    // by layer
  std::vector<Pool> pools_;
  int n_slots_ = 0;  // of all layers that are not pinned
  std::unique_ptr<Replacement> replacement_;
  std::unique_ptr<VictimQueue> queue_;
  static constexpr int kFraction = 48;  // bits, enough for the largest model
  uint64_t layers_per_id_;              // 1 / n_experts, rounded up: a product is a fast division
  std::vector<int> slot_;               // by id, -1: not resident
  std::vector<uint64_t> resident_, pinned_, used_;  // sets of ids, bit by bit; used by the step
  std::vector<uint64_t> asked_;                     // scratch, such a set
  std::vector<uint32_t> n_rows_;                    // by id, the rows of the last step that used it
  std::vector<uint32_t> uses_;                      // by id
  std::vector<int> n_resident_;                     // by layer

  uint64_t step_ = 0;
  bool in_step_ = false;
  bool is_prefill_ = false;
  bool is_token_ = true;
  int rows_in_step_ = 1;
  std::vector<Use> use_;  // [n_uses_], of the step; the rest is room
  size_t n_uses_ = 0;
  bool any_missed_ = false;
  size_t n_missed_ = 0;          // without those that can displace nobody
  std::vector<int> missed_ids_;  // [n_missed_], the rest is room
  std::vector<Miss> misses_;
  std::vector<double> values_;  // beside them
  std::vector<double> bar_;     // by pool, what a newcomer must be worth more than
  std::vector<Move> moves_;
  uint64_t moved_bytes_ = 0;     // in this step
  uint64_t hidden_bytes_ = 0;    // of them
  int n_evicted_ = 0;            // in this step
  double ceiling_ = 0.0;         // who is worth as much is not lined up
  double highest_victim_ = 0.0;  // value of those who left in the last step
  double evictions_ = 0.0;       // per step, decayed mean
  double residence_ = 0.0;       // steps for which an expert stays, on the average
  CopyTrials trials_;
  CacheCounts counts_;
};

}  // namespace sluice::policy
