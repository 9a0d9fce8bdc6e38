// Shares expert slots out over the layers. Part of the planner.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "policy/plan/planner.h"

namespace sluice::policy {

// What may and must be in VRAM, by layer.
struct SlotRules {
  std::vector<bool> allowed;  // it has experts, and no wish keeps them on the CPU
  std::vector<bool> pinned;   // all its experts; always allowed
};

// The rules that the wishes make for a model whose last n_gpu_layers layers are on the GPU. Throws
// Errc::bad_request for a pinned layer that cannot be.
SlotRules slot_rules(const ModelShape& model, const Wishes& wishes, int n_gpu_layers);

struct SlotLimit {
  uint64_t n_bytes;
  int64_t n_slots;
};

// Pinned layers whole, whatever the limit, then one slot for every allowed layer in turn, from the
// first layer on, until the next would pass the limit. A larger limit only continues the row, so no
// layer ever loses a slot by it.
std::vector<int> share_out(const ModelShape& model, const SlotRules& rules, SlotLimit limit);

std::vector<SizeClass> size_classes(const ModelShape& model, const std::vector<int>& n_slots);

}  // namespace sluice::policy
