// The room that a device has for experts, and the table by which its work finds them. One slot
// holds one expert; slots of a pool have the same size. Sized once; nothing is allocated later.
//
// The table is read by the device's work and written between steps only. An expert leaves it before
// its slot is written, and enters it after: what is in the table may always be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/device.h"
#include "model/model.h"
#include "policy/expert_cache.h"

namespace sluice::engine {

class ExpertSlots {
 public:
  // As many slots as the cache decides about.
  ExpertSlots(backend::Device& device, const model::Model& model, const policy::ExpertCache& cache);

  const backend::ExpertLayout& layout(LayerId layer) const {
    return layouts_[static_cast<size_t>(layer.value)];
  }
  std::byte* slot(int pool, policy::SlotId slot) const;

  // By expert of the layer: its slot, or null. In the device's memory.
  const std::byte* const* table(LayerId layer) const {
    return table_ + static_cast<size_t>(layer.value) * n_experts_;
  }
  // The entry of an expert, for the device's own work to write.
  const std::byte*& entry(policy::ExpertKey key) const {
    return table_[static_cast<size_t>(key.layer.value) * n_experts_ +
                  static_cast<size_t>(key.expert.value)];
  }

 private:
  struct Pool {
    backend::Buffer memory;
    uint64_t slot_bytes = 0;
  };

  size_t n_experts_;
  std::vector<backend::ExpertLayout> layouts_;  // by layer
  std::vector<Pool> pools_;
  backend::Buffer table_memory_;
  const std::byte** table_ = nullptr;
};

}  // namespace sluice::engine
