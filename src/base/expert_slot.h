// How much room an expert takes in one piece, in the device's memory and in the host's: its
// matrices one behind the other, each on a boundary from which any kernel can read, and the whole
// on a boundary of cache lines. Asked by whoever lays experts out and by the planner, so that the
// two cannot disagree.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/units.h"

namespace sluice {

// Of one matrix of an expert, with the gap behind it. An expert is the sum of its matrices.
constexpr uint64_t slot_part_bytes(uint64_t matrix_bytes) { return round_up(matrix_bytes, 16); }

// Of an expert, with the gap behind it.
constexpr uint64_t slot_bytes(uint64_t expert_bytes) { return round_up(expert_bytes, 256); }

}  // namespace sluice
