// Keeps logits finite: no arithmetic of the chain may make an infinity, and then a NaN, of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <limits>

namespace sluice::sampler {

inline float bounded(double logit) {
  constexpr double kMost = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(logit, -kMost, kMost));
}

}  // namespace sluice::sampler
