// What a step tells of a row's logits where nobody needs all of them: the best, which are small
// enough to cross from a device with every token. Plain, for kernels of any device to write.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

#include "base/ids.h"

namespace sluice::backend {

constexpr int kMaxBest = 256;

struct Candidate {
  TokenId token;
  float logit;
};

struct PickedRow {
  int32_t is_finite;         // all logits of the row are
  int32_t n_best;            // 0 where they are not
  Candidate best[kMaxBest];  // the best first; of equals the lower token
};

// The n_best of a row, by a CPU's thread.
void pick_best(std::span<const float> logits, int n_best, PickedRow& row);

}  // namespace sluice::backend
