// See rope.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/rope.h"

#include <algorithm>
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

bool RopeTable::holds(const RopeView& rope, std::span<const int32_t> positions) const {
  return magnitude_ == rope.magnitude && std::ranges::equal(frequencies_, rope.frequencies) &&
         std::ranges::equal(positions_, positions);
}

void RopeTable::prepare(const RopeView& rope, std::span<const int32_t> positions,
                        ThreadPool& pool) {
  if (holds(rope, positions)) return;
  positions_.clear();  // nothing is held until all of it is: memory may run out in between
  frequencies_.assign(rope.frequencies.begin(), rope.frequencies.end());
  magnitude_ = rope.magnitude;
  n_rot_ = 2 * frequencies_.size();
  angles_.resize(std::max(angles_.size(), positions.size() * n_rot_));
  constexpr int64_t kRowsAtOnce = 8;  // about 20 us
  pool.parallel_for(std::ssize(positions), kRowsAtOnce, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      rope_angles(rope, positions[static_cast<size_t>(r)],
                  std::span(angles_).subspan(static_cast<size_t>(r) * n_rot_, n_rot_));
    }
  });
  positions_.assign(positions.begin(), positions.end());
}

}  // namespace sluice::backend::cpu
