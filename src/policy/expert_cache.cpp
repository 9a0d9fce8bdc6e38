// See expert_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/expert_cache.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/check.h"
#include "base/error.h"

namespace sluice::policy {

namespace {

constexpr double kNoCeiling = std::numeric_limits<double>::infinity();
constexpr double kCeiling = 1.25;            // times the highest victim of the last step
constexpr double kAdmissionRate = 1.0 / 32;  // of the mean of admissions per step

// What a layer keeps against the others of its pool.
int floor_of(PolicyKind policy, int n_slots) {
  switch (policy) {
    case PolicyKind::lru:
      return n_slots;
    case PolicyKind::lru_global:
      return 0;
    default:
      return n_slots / 2;
  }
}

}  // namespace

std::vector<CacheLayer> share_slots(const RoutingShape& shape, double share) {
  CHECK(share >= 0.0 && share <= 1.0);
  std::map<uint64_t, std::vector<size_t>> layers_of;  // by size
  for (size_t l = 0; l < shape.expert_bytes.size(); ++l) {
    if (shape.expert_bytes[l] > 0) layers_of[shape.expert_bytes[l]].push_back(l);
  }
  std::vector<CacheLayer> layers(shape.expert_bytes.size());
  for (const auto& [bytes, members] : layers_of) {
    const auto n = static_cast<double>(members.size());
    const auto n_slots = static_cast<size_t>(std::lround(share * n * shape.n_experts));
    for (size_t i = 0; i < members.size(); ++i) {
      const size_t up_to = n_slots * (i + 1) / members.size();
      const size_t before = n_slots * i / members.size();
      layers[members[i]] = {bytes, static_cast<int>(up_to - before), false};
    }
  }
  return layers;
}

ExpertCache::ExpertCache(const CacheOptions& options)
    : options_(options), n_experts_(options.n_experts) {
  CHECK(n_experts_ >= 1 && !options_.layers.empty());
  const auto n_layers = options_.layers.size();
  const size_t n = n_layers * static_cast<size_t>(n_experts_);
  slot_.assign(n, -1);
  used_.assign(n, 0);
  n_rows_.assign(n, 0);
  uses_.assign(n, 0);
  resident_.assign(n, 0);
  place_.assign(n, 0);
  n_resident_.assign(n_layers, 0);
  uses_now_.reserve(n);
  misses_.reserve(n);
  missed_ids_.reserve(n);
  values_.assign(n, 0.0);
  moves_.reserve(n);
  make_pools();
  ReplacementShape shape{static_cast<int>(n_layers), n_experts_, pool_of_,
                         std::vector<int>(pools_.size(), 0)};
  for (size_t l = 0; l < n_layers; ++l) {
    if (options_.layers[l].pinned) continue;
    shape.pool_slots[static_cast<size_t>(pool_of_[l])] += options_.layers[l].n_slots;
    n_slots_ += options_.layers[l].n_slots;
  }
  replacement_ = make_replacement(options_.policy, shape);
  queue_ = std::make_unique<VictimQueue>(n_experts_, pool_of_);
  for (size_t l = 0; l < n_layers; ++l) {
    for (int e = 0; options_.layers[l].pinned && e < n_experts_; ++e) {
      take_slot(id_of(static_cast<int>(l), e), -1);
    }
  }
}

void ExpertCache::make_pools() {
  std::map<uint64_t, int> pool_of_size;
  for (CacheLayer& layer : options_.layers) {
    CHECK(layer.n_slots >= 0 && layer.n_slots <= n_experts_);
    if (layer.pinned) layer.n_slots = n_experts_;
    const auto [entry, is_new] =
        pool_of_size.emplace(layer.expert_bytes, static_cast<int>(pools_.size()));
    if (is_new) pools_.emplace_back();
    pool_of_.push_back(entry->second);
    Pool& pool = pools_[static_cast<size_t>(entry->second)];
    const int floor = layer.pinned ? 0 : floor_of(options_.policy, layer.n_slots);
    floor_.push_back(floor);
    pool.n_reserved += floor;
    pool.n_slots += layer.n_slots;
  }
  for (Pool& pool : pools_) {
    for (int slot = pool.n_slots - 1; slot >= 0; --slot) pool.free_.push_back(slot);
  }
}

std::span<const Move> ExpertCache::fill(const RoutingProfile* profile) {
  CHECK(step_ == 0);
  const int n_layers = static_cast<int>(options_.layers.size());
  if (profile != nullptr) {
    if (profile->n_layers() != n_layers || profile->n_experts() != n_experts_) {
      throw Error(Errc::bad_file, cat("routing profile: ", profile->n_layers(), " layers of ",
                                      profile->n_experts(), " experts; expected ", n_layers, " of ",
                                      n_experts_, " (the profile of another model?)"));
    }
    const std::vector<float> rates = profile->rates();
    replacement_->seed(rates);
    for (size_t i = 0; i < rates.size(); ++i) {
      if (rates[i] > 0.0f && slot_[i] < 0) misses_.push_back({rates[i], static_cast<int>(i)});
    }
    std::stable_sort(misses_.begin(), misses_.end(),
                     [](const Miss& a, const Miss& b) { return a.value > b.value; });
    for (const Miss& miss : misses_) {
      if (has_free_slot(layer_of(miss.id))) take_slot(miss.id, -1);
    }
    misses_.clear();
  }
  return moves_;
}

void ExpertCache::begin_step(Phase phase, int n_rows) {
  CHECK(!in_step_ && n_rows >= 1);
  in_step_ = true;
  rows_in_step_ = phase == Phase::prefill ? n_rows : 1;
  is_token_ = n_rows == 1 || phase == Phase::decode;
  ++step_;
  uses_now_.clear();
}

int ExpertCache::touch(LayerId layer, std::span<const RoutedExpert> routed) {
  DCHECK(in_step_);
  int n_hits = 0;
  const auto n = static_cast<float>(routed.size());
  for (size_t rank = 0; rank < routed.size(); ++rank) {
    const int id = id_of(layer.value, routed[rank].expert.value);
    const auto i = static_cast<size_t>(id);
    n_hits += slot_[i] >= 0;
    if (used_[i] == stamp()) {
      ++n_rows_[i];
      continue;
    }
    used_[i] = stamp();
    n_rows_[i] = 1;
    ++uses_[i];
    uses_now_.push_back({id, static_cast<float>(rank) / n, 1.0f});
  }
  counts_.n_lookups += routed.size();
  counts_.n_hits += static_cast<uint64_t>(n_hits);
  return n_hits;
}

std::span<const Move> ExpertCache::end_step() {
  CHECK(in_step_);
  in_step_ = false;
  moves_.clear();
  moved_bytes_ = 0;
  if (rows_in_step_ > 1) {
    const float scale = 1.0f / static_cast<float>(rows_in_step_);
    for (Use& use : uses_now_) {
      use.share = static_cast<float>(n_rows_[static_cast<size_t>(use.id)]) * scale;
    }
  }
  replacement_->observe(uses_now_, is_token_);
  missed_ids_.clear();
  for (const Use& use : uses_now_) {
    if (slot_[static_cast<size_t>(use.id)] < 0) missed_ids_.push_back(use.id);
  }
  if (!missed_ids_.empty()) admit_misses();
  admissions_ += kAdmissionRate * (static_cast<double>(moves_.size()) - admissions_);
  return moves_;
}

void ExpertCache::admit_misses() {
  replacement_->values(missed_ids_, values_);
  misses_.clear();
  for (size_t i = 0; i < missed_ids_.size(); ++i) misses_.push_back({values_[i], missed_ids_[i]});
  std::sort(misses_.begin(), misses_.end(), [](const Miss& a, const Miss& b) {
    return a.value != b.value ? a.value > b.value : a.id < b.id;
  });
  // Who leaves is seldom worth much more than who left last time, so most need no closer look.
  const double ceiling = highest_victim_ * kCeiling;
  line_up_residents(replacement_->is_probability() && ceiling > 0.0 ? ceiling : kNoCeiling);
  highest_victim_ = 0.0;
  for (const Miss& miss : misses_) admit(miss.id, miss.value);
}

// Who may leave: the residents that this step did not use, or those of them worth less than
// `ceiling`.
void ExpertCache::line_up_residents(double ceiling) {
  ceiling_ = ceiling;
  const std::span<const double> least = replacement_->least_values();
  for (int l = 0; l < static_cast<int>(options_.layers.size()); ++l) {
    const auto layer = static_cast<size_t>(l);
    const int* const residents = resident_.data() + id_of(l, 0);
    const std::span<int> ids = queue_->ids(l);
    size_t n = 0;
    for (int i = 0; i < (options_.layers[layer].pinned ? 0 : n_resident_[layer]); ++i) {
      ids[n] = residents[i];  // stays only if counted; the list has room for all
      n += !protected_now(residents[i]) & (least[static_cast<size_t>(residents[i])] < ceiling);
    }
    replacement_->values(ids.first(n), queue_->values(l));
    queue_->set_layer(l, static_cast<int>(n), n_resident_[layer] - floor_[layer]);
  }
  queue_->ready();
}

const VictimQueue::Entry* ExpertCache::find_victim(int layer) {
  const VictimQueue::Entry* victim = queue_->lowest_for(layer);
  if (ceiling_ != kNoCeiling && (victim == nullptr || victim->value >= ceiling_)) {
    line_up_residents(kNoCeiling);
    victim = queue_->lowest_for(layer);
  }
  return victim;
}

double ExpertCache::residence() const { return n_slots_ / std::max(admissions_, 1.0); }

bool ExpertCache::has_free_slot(int layer) const {
  const auto l = static_cast<size_t>(layer);
  const Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  const int n_kept = n_resident_[l] < floor_[l] ? 0 : pool.n_reserved;
  return static_cast<int>(pool.free_.size()) > n_kept;
}

void ExpertCache::admit(int id, double value) {
  const int layer = layer_of(id);
  const auto l = static_cast<size_t>(layer);
  const uint64_t bytes = options_.layers[l].expert_bytes;
  if (bytes > options_.max_copy_bytes - moved_bytes_) return;
  const bool is_free = has_free_slot(layer);
  // None: only experts of this step could leave.
  const VictimQueue::Entry* const victim = is_free ? nullptr : find_victim(layer);
  if (!is_free && (victim == nullptr || !replacement_->displaces(value, victim->value))) return;
  const double gain = is_free ? value : value - victim->value;
  if (replacement_->is_probability() && gain * residence() < options_.copy_cost) return;
  const int victim_id = is_free ? -1 : victim->id;
  if (!is_free) {
    highest_victim_ = std::max(highest_victim_, victim->value);
    queue_->give_lowest(layer_of(victim_id), layer);
  }
  take_slot(id, victim_id);
}

// The slot of the victim, or a free one.
void ExpertCache::take_slot(int id, int victim) {
  const auto l = static_cast<size_t>(layer_of(id));
  Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  Move move{key_of(id), {}, victim >= 0, pool_of_[l], {}};
  int& slot = slot_[static_cast<size_t>(id)];
  if (victim >= 0) {
    slot = std::exchange(slot_[static_cast<size_t>(victim)], -1);
    move.out = key_of(victim);
    leave(victim);
    replacement_->evicted(victim);
  } else {
    slot = pool.free_.back();
    pool.free_.pop_back();
    if (n_resident_[l] < floor_[l]) --pool.n_reserved;
  }
  place_[static_cast<size_t>(id)] = n_resident_[l];
  resident_[static_cast<size_t>(id_of(static_cast<int>(l), n_resident_[l]++))] = id;
  if (!options_.layers[l].pinned) replacement_->admitted(id);
  move.slot = SlotId(slot);
  moves_.push_back(move);
  moved_bytes_ += options_.layers[l].expert_bytes;
  ++counts_.n_copies;
  counts_.copied_bytes += options_.layers[l].expert_bytes;
}

// The last one of its layer's list takes its place.
void ExpertCache::leave(int id) {
  const int layer = layer_of(id);
  const int last =
      resident_[static_cast<size_t>(id_of(layer, --n_resident_[static_cast<size_t>(layer)]))];
  const int place = place_[static_cast<size_t>(id)];
  resident_[static_cast<size_t>(id_of(layer, place))] = last;
  place_[static_cast<size_t>(last)] = place;
}

}  // namespace sluice::policy
