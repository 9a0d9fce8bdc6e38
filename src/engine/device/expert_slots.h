// The room that a device has for experts, and the table by which its work finds them. One slot
// holds one expert; slots of a pool have the same size. Sized once; nothing is allocated later.
//
// The table is read by a step's work, and changes at its head: a step finds what was published
// before it, and nothing whose slot is written meanwhile. So what it finds may always be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/device_ops.h"
#include "engine/device/device_block.h"
#include "model/model.h"
#include "policy/cache/expert_cache.h"

namespace sluice::engine {

class ExpertSlots {
 public:
  // As many slots as the cache decides about; they and the table come from blocks that outlive it.
  ExpertSlots(const model::Model& model, const policy::ExpertCache& cache, DeviceBlock& slots,
              DeviceBlock& tables);

  const backend::ExpertLayout& layout(LayerId layer) const {
    return layouts_[static_cast<size_t>(layer.value)];
  }
  std::byte* slot(int pool, policy::SlotId slot) const;

  // By expert of the layer: its slot, or null. In the device's memory.
  const std::byte* const* table(LayerId layer) const { return &table_[index({layer, {}})]; }
  const std::byte** table() const { return table_; }  // of all layers

  // Shows the expert from the next step on, or (null) no more; that step first copies it to the
  // slot, where it stands elsewhere in the device's memory. The host's own copy of the table is
  // ahead of the device's by what has changed since the last step.
  void publish(policy::ExpertKey key, std::byte* slot, const std::byte* from = nullptr);
  const std::byte* published(policy::ExpertKey key) const { return published_[index(key)]; }

  // What the device's table lacks, each entry once: a step's block brings it over, and says so when
  // the step is done. Or a stream writes it, but for the newest `n_kept`.
  std::span<const backend::TableChange> changes() const { return changes_; }
  bool has_copies() const;  // among the changes
  void forget_changes(size_t n_oldest);
  void clear(backend::Stream& main);
  void write_changes(backend::Stream& main, size_t n_kept = 0);

 private:
  struct Pool {
    std::byte* slots = nullptr;
    uint64_t n_slots = 0;
    uint64_t slot_bytes = 0;
  };

  size_t index(policy::ExpertKey key) const {
    return static_cast<size_t>(key.layer.value) * n_experts_ +
           static_cast<size_t>(key.expert.value);
  }

  size_t n_experts_;
  std::vector<backend::ExpertLayout> layouts_;  // by layer
  std::vector<Pool> pools_;
  const std::byte** table_ = nullptr;
  std::vector<const std::byte*> published_;
  std::vector<backend::TableChange> changes_;
};

}  // namespace sluice::engine
