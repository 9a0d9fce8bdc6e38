// See rope.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rope.h"

#include <cmath>

namespace sluice::backend::cpu {

void rope_angles(const RopeView& rope, int32_t position, std::vector<float>& angles) {
  angles.resize(2 * rope.frequencies.size());
  for (size_t j = 0; j < rope.frequencies.size(); ++j) {
    const double theta = static_cast<double>(position) * rope.frequencies[j];
    angles[2 * j] = static_cast<float>(std::cos(theta)) * rope.magnitude;
    angles[2 * j + 1] = static_cast<float>(std::sin(theta)) * rope.magnitude;
  }
}

// y0 = x0 cos - x1 sin; y1 = x0 sin + x1 cos
void rope_turn(RopePairing pairing, std::span<const float> angles, float* head) {
  const size_t n_pairs = angles.size() / 2;
  const bool adjacent = pairing == RopePairing::adjacent;
  for (size_t j = 0; j < n_pairs; ++j) {
    float& x0 = head[adjacent ? 2 * j : j];
    float& x1 = head[adjacent ? 2 * j + 1 : j + n_pairs];
    const float c = angles[2 * j];
    const float s = angles[2 * j + 1];
    const float y0 = x0 * c - x1 * s;
    x1 = x0 * s + x1 * c;
    x0 = y0;
  }
}

}  // namespace sluice::backend::cpu
