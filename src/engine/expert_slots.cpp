// See expert_slots.h.
// SPDX-License-Identifier: Apache-2.0
#include "engine/expert_slots.h"

#include <algorithm>

#include "base/check.h"
#include "policy/pricing.h"

namespace sluice::engine {

ExpertSlots::ExpertSlots(backend::Device& device, const model::Model& model,
                         const policy::ExpertCache& cache)
    : n_experts_(static_cast<size_t>(model.config().n_experts)),
      pools_(static_cast<size_t>(cache.n_pools())) {
  for (const model::Layer& layer : model.layers()) {
    layouts_.emplace_back(layer.experts);
    Pool& pool = pools_[static_cast<size_t>(cache.pool(layer.id))];
    pool.slot_bytes = std::max(pool.slot_bytes, policy::slot_bytes(layouts_.back().n_bytes));
  }
  for (size_t i = 0; i < pools_.size(); ++i) {
    const auto n_slots = static_cast<uint64_t>(cache.n_slots(static_cast<int>(i)));
    pools_[i].memory = device.allocate(backend::MemoryKind::device, n_slots * pools_[i].slot_bytes);
  }
  const size_t n_entries = layouts_.size() * n_experts_;
  table_memory_ = device.allocate(backend::MemoryKind::device, n_entries * sizeof(*table_));
  table_ = table_memory_.as<const std::byte*>();
}

std::byte* ExpertSlots::slot(int pool, policy::SlotId slot) const {
  const Pool& p = pools_[static_cast<size_t>(pool)];
  const uint64_t at = static_cast<uint64_t>(slot.value) * p.slot_bytes;
  CHECK(at + p.slot_bytes <= p.memory.n_bytes());
  return p.memory.data() + at;
}

}  // namespace sluice::engine
