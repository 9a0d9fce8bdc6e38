// All that varies from one step to the next, as one piece of memory: an image that the host writes,
// and its twin, which the device reads. One copy at the head of a step's work brings it over, so
// the work itself can be recorded once for a width.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/device_ops.h"
#include "base/step_memory.h"
#include "engine/device/device_block.h"
#include "engine/step/step_rows.h"

namespace sluice::engine {

class StepBlock {
 public:
  // `device_memory` outlives it.
  StepBlock(backend::Device& device, const StepBlockSize& size, DeviceBlock& device_memory);

  // The input of the device's first layer, for the host to write.
  backend::RowsView input(int64_t width) const;
  // Experts that are forced on a narrow step's rows, likewise; copied where `copy` is told so.
  int32_t* forced_input(int64_t width) const;

  // Writes the rest of the image of a step, whose rows are padded to `width`; of its experts' table
  // kTableChanges at most.
  struct Values {
    uint32_t step = 0;  // its number
    float link_share = 0.0f;
    std::span<const backend::TableChange> changes;
    std::span<const int32_t> states_from = {}, states_to = {};  // as RecurrentStates has them
  };
  void write(const StepRows& rows, const KvCache& cache, const Values& values, int64_t width);

  // Enqueues or records the copy, and says where things are then.
  void copy(backend::Stream& stream, int64_t width, bool with_forced) const;
  const int32_t* forced(int64_t width) const;
  backend::StepView view(int64_t width, int64_t table_stride) const;
  backend::RowsView x(int64_t width) const;
  const uint32_t* step() const;   // the same for every width
  const int32_t* n_live() const;  // likewise
  const float* link_share() const;
  // The layer's states, as the twin names those of a step; the same for every width.
  backend::StateLayerView states(backend::StateLayerView layer) const;
  backend::TableChangesView changes(const std::byte** table) const;

 private:
  struct Head {
    uint32_t step = 0;
    int32_t n_live = 0;
    int32_t n_logits = 0;
    int32_t n_best = 0;
    int32_t n_changes = 0;
    float link_share = 0.0f;
  };
  struct Places {  // of one width, in the image or the twin
    Head* head = nullptr;
    backend::TableChange* changes = nullptr;
    int32_t* page_table = nullptr;
    int32_t *states_from = nullptr, *states_to = nullptr;
    TokenId* tokens = nullptr;
    int32_t* positions = nullptr;
    int32_t* sequences = nullptr;
    int32_t* logit_rows = nullptr;
    float* angles = nullptr;
    float* x = nullptr;
    uint64_t n_bytes = 0;       // up to here
    int32_t* forced = nullptr;  // of narrow steps
    uint64_t all_bytes = 0;
  };
  static Places places(const StepBlockSize& size, std::byte* base, int64_t width);

  StepBlockSize size_;
  backend::Buffer image_;  // mapped
  std::byte* twin_;
};

}  // namespace sluice::engine
