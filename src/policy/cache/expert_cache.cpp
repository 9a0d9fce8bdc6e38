// See expert_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/expert_cache.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/check.h"
#include "base/error.h"

namespace sluice::policy {

namespace {

constexpr double kEvictionRate = 1.0 / 32;  // of the mean of evictions per step
constexpr int kHorizon = 4;                 // steps, where copies cost something

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
  layers_per_id_ = (uint64_t{1} << kFraction) / static_cast<uint64_t>(n_experts_) + 1;
  slot_.assign(n, -1);
  for (std::vector<uint64_t>* set : {&resident_, &pinned_, &used_, &asked_}) {
    set->assign((n + 63) / 64, 0);
  }
  n_rows_.assign(n, 0);
  uses_.assign(n, 0);
  n_resident_.assign(n_layers, 0);
  use_.resize(n);
  misses_.reserve(n);
  missed_ids_.assign(n, 0);
  values_.assign(n, 0.0);
  moves_.reserve(n);
  make_pools();
  bar_.assign(pools_.size(), 0.0);
  ReplacementShape shape{static_cast<int>(n_layers), n_experts_, pool_of_,
                         std::vector<int>(pools_.size(), 0),
                         options_.copy_cost > 0.0 ? kHorizon : 1};
  for (size_t l = 0; l < n_layers; ++l) {
    if (options_.layers[l].pinned) continue;
    shape.pool_slots[static_cast<size_t>(pool_of_[l])] += options_.layers[l].n_slots;
    n_slots_ += options_.layers[l].n_slots;
  }
  replacement_ = make_replacement(options_.policy, shape);
  queue_ = std::make_unique<VictimQueue>(n_experts_, pool_of_);
  for (size_t l = 0; l < n_layers; ++l) {
    for (int e = 0; options_.layers[l].pinned && e < n_experts_; ++e) {
      flip(pinned_, id_of(static_cast<int>(l), e));
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

std::span<const Move> ExpertCache::fill(const RoutingProfile* profile, Unprofiled others) {
  CHECK(step_ == 0);
  if (profile != nullptr) fill_by(*profile);
  if (others == Unprofiled::any) fill_evenly();
  return moves_;
}

void ExpertCache::fill_by(const RoutingProfile& profile) {
  const int n_layers = static_cast<int>(options_.layers.size());
  if (profile.n_layers() != n_layers || profile.n_experts() != n_experts_) {
    throw Error(Errc::bad_file, cat("routing profile: ", profile.n_layers(), " layers of ",
                                    profile.n_experts(), " experts; expected ", n_layers, " of ",
                                    n_experts_, " (the profile of another model?)"));
  }
  const std::vector<float> rates = profile.rates();
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

// As many of each layer, as far as profile and floors allow.
void ExpertCache::fill_evenly() {
  std::vector<int> next(options_.layers.size(), 0);
  for (int n = 1; n <= n_experts_; ++n) {
    for (size_t l = 0; l < next.size(); ++l) {
      const int layer = static_cast<int>(l);
      if (n_resident_[l] >= n || !has_free_slot(layer)) continue;
      while (has(resident_, id_of(layer, next[l]))) ++next[l];
      take_slot(id_of(layer, next[l]), -1);
    }
  }
}

void ExpertCache::begin_step(Phase phase, int n_rows) {
  CHECK(!in_step_ && n_rows >= 1);
  in_step_ = true;
  rows_in_step_ = phase == Phase::prefill ? n_rows : 1;
  is_prefill_ = phase == Phase::prefill;
  is_token_ = n_rows == 1 || phase == Phase::decode;
  ++step_;
  n_uses_ = 0;
  any_missed_ = false;
  std::fill(used_.begin(), used_.end(), 0);
}

int ExpertCache::touch(LayerId layer, std::span<const RoutedExpert> routed) {
  DCHECK(in_step_);
  int n_hits = 0;
  const auto n = static_cast<float>(routed.size());
  for (size_t rank = 0; rank < routed.size(); ++rank) {
    const int id = id_of(layer.value, routed[rank].expert.value);
    const auto i = static_cast<size_t>(id);
    n_hits += has(resident_, id);
    if (has(used_, id)) {
      ++n_rows_[i];
      continue;
    }
    flip(used_, id);
    n_rows_[i] = 1;
    ++uses_[i];
    use_[n_uses_++] = {id, static_cast<float>(rank) / n, 1.0f};
  }
  any_missed_ |= static_cast<size_t>(n_hits) < routed.size();
  counts_.n_lookups += routed.size();
  counts_.n_hits += static_cast<uint64_t>(n_hits);
  return n_hits;
}

std::span<const Move> ExpertCache::end_step(uint64_t hidden_bytes) {
  CHECK(in_step_);
  in_step_ = false;
  moves_.clear();
  moved_bytes_ = 0;
  n_evicted_ = 0;
  hidden_bytes_ = hidden_bytes;
  const std::span<Use> uses = std::span(use_).first(n_uses_);
  if (rows_in_step_ > 1) {
    const float scale = 1.0f / static_cast<float>(rows_in_step_);
    for (Use& use : uses) {
      use.share = static_cast<float>(n_rows_[static_cast<size_t>(use.id)]) * scale;
    }
  }
  replacement_->observe(uses, is_token_);
  trials_.begin_step(step_, uses_);
  if (any_missed_) admit_misses();
  evictions_ += kEvictionRate * (n_evicted_ - evictions_);
  return moves_;
}

}  // namespace sluice::policy
