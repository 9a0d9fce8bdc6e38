// Which of the experts just missed are copied, and which ones they replace; see expert_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>

#include "policy/cache/expert_cache.h"

namespace sluice::policy {

namespace {

constexpr double kNoCeiling = std::numeric_limits<double>::infinity();
constexpr double kCeiling = 1.25;  // times the highest victim of the last step
constexpr size_t kBuckets = 128;
constexpr double kLongestResidence = 64.0;  // steps: values say nothing about later ones

}  // namespace

void ExpertCache::admit_misses() {
  // Victims are seldom worth much more than those of the last step, so residents above a ceiling a
  // little higher than that are not listed; find_victim() lists all where that was too low.
  const double ceiling = highest_victim_ * kCeiling;
  line_up_residents(replacement_->is_probability() && ceiling > 0.0 ? ceiling : kNoCeiling);
  highest_victim_ = 0.0;
  residence_ = std::min(n_slots_ / std::max(evictions_, 1.0), kLongestResidence);
  list_misses();
  sort_misses();
  for (const Miss& miss : misses_) admit(miss.id, miss.value);
}

// Lists those missed, without those that can displace nobody.
void ExpertCache::list_misses() {
  for (size_t w = 0; w < used_.size(); ++w) asked_[w] = used_[w] & ~resident_[w];
  const size_t n = replacement_->list_below(kNoCeiling, asked_, missed_ids_, values_);
  for (size_t p = 0; p < pools_.size(); ++p) {
    const double least = std::min(queue_->least(static_cast<int>(p)), ceiling_);
    bar_[p] = pools_[p].free_.empty() ? least : -kNoCeiling;
  }
  n_missed_ = 0;
  for (size_t i = 0; i < n; ++i) {
    const auto pool = static_cast<size_t>(pool_of_[static_cast<size_t>(layer_of(missed_ids_[i]))]);
    const bool is_kept = values_[i] > bar_[pool];  // no branch: it would be mispredicted
    values_[n_missed_] = values_[i];
    missed_ids_[n_missed_] = missed_ids_[i];
    n_missed_ += is_kept;
  }
}

// The most valuable first. Spread over buckets, few to each: std::sort alone took three times as
// long, since its branches are mispredicted.
void ExpertCache::sort_misses() {
  const std::span<const double> values = std::span(values_).first(n_missed_);
  misses_.resize(n_missed_);
  if (values.empty()) return;
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const double highest = *high;
  const double scale = highest > *low ? static_cast<double>(kBuckets - 1) / (highest - *low) : 0.0;
  const auto bucket_of = [&](double v) { return static_cast<size_t>((highest - v) * scale); };
  std::array<uint32_t, kBuckets + 1> end = {};  // of each bucket, once it is filled
  for (const double value : values) ++end[bucket_of(value) + 1];
  for (size_t b = 0; b < kBuckets; ++b) end[b + 1] += end[b];
  for (size_t i = 0; i < values.size(); ++i) {
    misses_[end[bucket_of(values[i])]++] = {values[i], missed_ids_[i]};
  }
  for (size_t b = 0, begin = 0; b < kBuckets; begin = end[b++]) {
    if (end[b] - begin < 2) continue;
    std::sort(misses_.data() + begin, misses_.data() + end[b], [](const Miss& x, const Miss& y) {
      return x.value != y.value ? x.value > y.value : x.id < y.id;
    });
  }
}

// Who may leave: the residents that this step did not use and that are worth less than `ceiling`.
void ExpertCache::line_up_residents(double ceiling) {
  ceiling_ = ceiling;
  for (size_t w = 0; w < asked_.size(); ++w) asked_[w] = resident_[w] & ~(used_[w] | pinned_[w]);
  for (size_t l = 0; l < n_resident_.size(); ++l) {
    queue_->spare()[l] = n_resident_[l] - floor_[l];
  }
  queue_->ready(replacement_->list_below(ceiling, asked_, queue_->ids(), queue_->values()));
}

// For an expert of the value `newcomer`.
const VictimQueue::Entry* ExpertCache::find_victim(int layer, double newcomer) {
  const VictimQueue::Entry* victim = queue_->lowest_for(layer);
  if (victim == nullptr && ceiling_ != kNoCeiling && replacement_->displaces(newcomer, ceiling_)) {
    line_up_residents(kNoCeiling);
    victim = queue_->lowest_for(layer);
  }
  return victim;
}

bool ExpertCache::has_free_slot(int layer) const {
  const auto l = static_cast<size_t>(layer);
  const Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  const int n_kept = n_resident_[l] < floor_[l] ? 0 : pool.n_reserved;
  return static_cast<int>(pool.free_.size()) > n_kept;
}

// Whether the uses that a copy brings until its expert is evicted pay for it. A victim's uses are
// lost, and the difference is scaled by how well such promises held so far (CopyTrials); a copy
// into a free slot loses nothing and is taken at its value.
bool ExpertCache::is_worth_it(int id, double value, const VictimQueue::Entry* victim) {
  double uses = value * residence_;
  if (victim != nullptr) {
    const double gain = value - victim->value;
    if (is_token_) trials_.choose(id, victim->id, gain, residence_, uses_);
    uses = gain * residence_ * trials_.kept();
  }
  if (is_prefill_) return true;
  const uint64_t bytes = options_.layers[static_cast<size_t>(layer_of(id))].expert_bytes;
  const bool is_hidden = moved_bytes_ + bytes <= hidden_bytes_;
  return uses >=
         (is_hidden ? options_.copy_cost : std::max(options_.copy_cost, options_.wait_cost));
}

void ExpertCache::admit(int id, double value) {
  const int layer = layer_of(id);
  const auto l = static_cast<size_t>(layer);
  const uint64_t bytes = options_.layers[l].expert_bytes;
  if (bytes > options_.max_copy_bytes - moved_bytes_) return;
  const bool is_free = has_free_slot(layer);
  // None: only experts of this step could leave.
  const VictimQueue::Entry* const victim = is_free ? nullptr : find_victim(layer, value);
  if (!is_free && (victim == nullptr || !replacement_->displaces(value, victim->value))) return;
  if (options_.copy_cost > 0.0 && replacement_->is_probability() && !is_worth_it(id, value, victim))
    return;
  const int victim_id = is_free ? -1 : victim->id;
  if (!is_free) {
    ++n_evicted_;
    highest_victim_ = std::max(highest_victim_, victim->value);
    queue_->give_lowest(layer_of(victim_id), layer);
  }
  take_slot(id, victim_id);
}

// The slot of the victim, or a free one.
void ExpertCache::take_slot(int id, int victim) {
  const auto l = static_cast<size_t>(layer_of(id));
  Pool& pool = pools_[static_cast<size_t>(pool_of_[l])];
  Move& move = moves_.emplace_back();
  move.in = key_of(id);
  move.pool = pool_of_[l];
  move.evicts = victim >= 0;
  int& slot = slot_[static_cast<size_t>(id)];
  if (victim >= 0) {
    slot = std::exchange(slot_[static_cast<size_t>(victim)], -1);
    move.out = key_of(victim);
    flip(resident_, victim);
    --n_resident_[static_cast<size_t>(move.out.layer.value)];
    replacement_->evicted(victim);
  } else {
    slot = pool.free_.back();
    pool.free_.pop_back();
    if (n_resident_[l] < floor_[l]) --pool.n_reserved;
  }
  move.slot = SlotId(slot);
  flip(resident_, id);
  ++n_resident_[l];
  if (!options_.layers[l].pinned) replacement_->admitted(id);
  moved_bytes_ += options_.layers[l].expert_bytes;
  ++counts_.n_copies;
  counts_.copied_bytes += options_.layers[l].expert_bytes;
}

}  // namespace sluice::policy
