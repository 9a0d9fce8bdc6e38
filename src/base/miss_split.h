// Who takes the experts of a layer that are not in VRAM: the device, which reads them over the
// link, or the CPU. Asked by the device, by the planner's cost model and by the simulated clock, so
// that all three speak of the same step.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>

namespace sluice {

// How many of a layer's misses the device reads itself. link_share is the link's share of what link
// and CPU do together (0: the CPU takes all, 1: the device), so a read takes the device 1 - share
// where it takes the CPU share; the two work side by side, and whole experts are shared out so that
// the later one ends soonest. Of two equally good splits it takes the one with more reads.
constexpr int link_reads(int n_misses, float link_share) {
  const float share = std::clamp(link_share, 0.0f, 1.0f);
  const auto ends = [&](int n) {
    return std::max(static_cast<float>(n) * (1.0f - share),
                    static_cast<float>(n_misses - n) * share);
  };
  const int n = static_cast<int>(static_cast<float>(n_misses) * share);
  return n < n_misses && ends(n + 1) <= ends(n) ? n + 1 : n;
}

}  // namespace sluice
