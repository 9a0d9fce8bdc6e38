// Rotary position embedding: the angles of a position, and the turn of one head.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "backend/views.h"

namespace sluice::backend::cpu {

// cos of every pair's angle at one position, then sin of every pair's, magnitude included.
// angles: [2 * n_pairs].
void rope_angles(const RopeView& rope, int32_t position, std::span<float> angles);

// Turns the first 2 * n_pairs dimensions of a head in place.
void rope_turn(RopePairing pairing, std::span<const float> angles, float* head);

}  // namespace sluice::backend::cpu
