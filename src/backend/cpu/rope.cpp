// See rope.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rope.h"

#include <cmath>

namespace sluice::backend::cpu {
namespace {

// y0 = x0 cos - x1 sin; y1 = x0 sin + x1 cos
struct Pair {
  float x0, x1;
};
inline Pair turned(Pair x, float cos, float sin) {
  return {x.x0 * cos - x.x1 * sin, x.x0 * sin + x.x1 * cos};
}

}  // namespace

void rope_angles(const RopeView& rope, int32_t position, std::span<float> angles) {
  const size_t n_pairs = rope.frequencies.size();
  for (size_t j = 0; j < n_pairs; ++j) {
    const double theta = static_cast<double>(position) * rope.frequencies[j];
    angles[j] = static_cast<float>(std::cos(theta)) * rope.magnitude;
    angles[n_pairs + j] = static_cast<float>(std::sin(theta)) * rope.magnitude;
  }
}

void rope_turn(RopePairing pairing, std::span<const float> angles, float* head) {
  const size_t n_pairs = angles.size() / 2;
  const float* cos = angles.data();
  const float* sin = cos + n_pairs;
  if (pairing == RopePairing::adjacent) {
    for (size_t j = 0; j < n_pairs; ++j) {
      const Pair y = turned({head[2 * j], head[2 * j + 1]}, cos[j], sin[j]);
      head[2 * j] = y.x0;
      head[2 * j + 1] = y.x1;
    }
  } else {
    float* other = head + n_pairs;
    for (size_t j = 0; j < n_pairs; ++j) {
      const Pair y = turned({head[j], other[j]}, cos[j], sin[j]);
      head[j] = y.x0;
      other[j] = y.x1;
    }
  }
}

}  // namespace sluice::backend::cpu
