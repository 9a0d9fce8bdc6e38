// Who takes the experts of a layer that are not in VRAM: the device, which reads them over the
// link, or the CPU. Asked by the device, by the planner's cost model and by the simulated clock, so
// that all three speak of the same step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>

namespace sluice {

// How many of a layer's misses the device reads itself: the share of them (0: none, 1: all),
// rounded to the nearest whole one, halves up.
inline int link_reads(int n_misses, float link_share) {
  const float n = std::floor(static_cast<float>(n_misses) * link_share + 0.5f);
  return static_cast<int>(std::clamp(n, 0.0f, static_cast<float>(n_misses)));
}

}  // namespace sluice
