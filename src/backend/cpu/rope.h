// Rotary position embedding of one head.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/views.h"

namespace sluice::backend::cpu {

// cos and sin of every pair's angle at one position, magnitude included: (cos_0, sin_0, cos_1,
// ...).
void rope_angles(const RopeView& rope, int32_t position, std::vector<float>& angles);

// Turns the first 2 * n_pairs dimensions of a head in place.
void rope_turn(RopePairing pairing, std::span<const float> angles, float* head);

}  // namespace sluice::backend::cpu
