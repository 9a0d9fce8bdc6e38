// Rotary position embedding: the angles of a step's rows, and the turn of one head.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

// cos of every pair's angle at one position, then sin of every pair's, magnitude included.
// angles: [2 * n_pairs].
void rope_angles(const RopeView& rope, int32_t position, std::span<float> angles);

// Turns the first 2 * n_pairs dimensions of a head in place.
void rope_turn(RopePairing pairing, std::span<const float> angles, float* head);

// The angles of all rows of a step. All layers of a step ask for the same ones, and a cos and sin
// in double precision cost more than the turns of a head, so they are kept until others are asked
// for.
class RopeTable {
 public:
  void prepare(const RopeView& rope, std::span<const int32_t> positions, ThreadPool& pool);

  std::span<const float> row(int64_t r) const {
    return std::span(angles_).subspan(static_cast<size_t>(r) * n_rot_, n_rot_);
  }

 private:
  bool holds(const RopeView& rope, std::span<const int32_t> positions) const;

  // What the angles were made of, by value: a view's memory may be another model's by now.
  std::vector<float> frequencies_;
  float magnitude_ = 0.0f;
  std::vector<int32_t> positions_;
  size_t n_rot_ = 0;
  std::vector<float> angles_;  // [n_rows, n_rot], or more rows left over from earlier steps
};

}  // namespace sluice::backend::cpu
