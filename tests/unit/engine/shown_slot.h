// What the device's table of experts shows, as the RAM device's own work sees it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/ram/ram_address.h"
#include "engine/device/expert_slots.h"

namespace sluice::engine::test {

// Null: the expert is not there.
inline std::byte* shown_slot(const ExpertSlots& slots, LayerId layer, int expert) {
  const std::byte* const slot = backend::host_address(slots.table(layer))[expert];
  return const_cast<std::byte*>(backend::host_address(slot));
}

}  // namespace sluice::engine::test
