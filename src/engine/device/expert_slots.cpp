// See expert_slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/device/expert_slots.h"

#include <algorithm>

#include "base/check.h"
#include "base/step_memory.h"
#include "policy/plan/pricing.h"

namespace sluice::engine {

ExpertSlots::ExpertSlots(const model::Model& model, const policy::ExpertCache& cache,
                         DeviceBlock& slots, DeviceBlock& tables)
    : n_experts_(static_cast<size_t>(model.config().n_experts)),
      pools_(static_cast<size_t>(cache.n_pools())),
      published_(model.layers().size() * n_experts_, nullptr) {
  for (const model::Layer& layer : model.layers()) {
    layouts_.emplace_back(layer.experts);
    Pool& pool = pools_[static_cast<size_t>(cache.pool(layer.id))];
    pool.slot_bytes = std::max(pool.slot_bytes, policy::slot_bytes(layouts_.back().n_bytes));
  }
  for (size_t i = 0; i < pools_.size(); ++i) {
    pools_[i].n_slots = static_cast<uint64_t>(cache.n_slots(static_cast<int>(i)));
    pools_[i].slots = slots.take(pools_[i].n_slots * pools_[i].slot_bytes);
  }
  table_ = reinterpret_cast<const std::byte**>(tables.take(published_.size() * sizeof(*table_)));
  changes_.reserve(published_.size());
}

std::byte* ExpertSlots::slot(int pool, policy::SlotId slot) const {
  const Pool& p = pools_[static_cast<size_t>(pool)];
  const auto at = static_cast<uint64_t>(slot.value);
  CHECK(at < p.n_slots);
  return p.slots + at * p.slot_bytes;
}

void ExpertSlots::publish(policy::ExpertKey key, std::byte* slot, const std::byte* from) {
  const auto entry = static_cast<int64_t>(index(key));
  published_[index(key)] = slot;
  std::erase_if(changes_, [entry](const backend::TableChange& c) { return c.entry == entry; });
  changes_.push_back({entry, slot, from, from ? round_up(layout(key.layer).n_bytes, 16) : 0});
}

bool ExpertSlots::has_copies() const {
  return std::ranges::any_of(changes_, [](const backend::TableChange& c) { return c.from; });
}

void ExpertSlots::clear(backend::Stream& main) {
  std::fill(published_.begin(), published_.end(), nullptr);
  changes_.clear();
  main.fill(reinterpret_cast<std::byte*>(table_), {}, published_.size() * sizeof(*table_));
}

void ExpertSlots::forget_changes(size_t n_oldest) {
  changes_.erase(changes_.begin(), changes_.begin() + static_cast<std::ptrdiff_t>(n_oldest));
}

void ExpertSlots::write_changes(backend::Stream& main, size_t n_kept) {
  if (changes_.size() <= n_kept) return;
  const size_t n = changes_.size() - n_kept;
  for (const backend::TableChange& c : std::span(changes_).first(n)) {
    if (c.from) main.copy(c.slot, c.from, c.n_bytes);
  }
  if (n > kTableChanges) {  // at the start, say: all of it at once
    main.write(reinterpret_cast<std::byte*>(table_), std::as_bytes(std::span(published_)));
    forget_changes(n);
    return;
  }
  for (const backend::TableChange& c : std::span(changes_).first(n)) {
    main.write(reinterpret_cast<std::byte*>(table_ + c.entry),
               std::as_bytes(std::span(&c.slot, 1)));
  }
  forget_changes(n);
}

}  // namespace sluice::engine
