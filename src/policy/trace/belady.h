// The ceiling: Belady's optimum, which knows the future. After each step it keeps, of what is
// resident and what was just used, those whose next uses come soonest; what would be used too late
// is not copied at all (bypass). No policy that copies only what a step used can hit more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/trace/replay.h"

namespace sluice::policy {

enum class Sharing {
  per_size,   // layers of one expert size share their slots: the ceiling of all policies
  per_layer,  // equal shares: the ceiling of `lru`
};

// With slots for `share` (0 to 1) of all experts. Holds the next use of every routed expert: 4
// bytes each.
ReplayResult replay_belady(const RoutingTrace& trace, double share, const CostModel& cost,
                           Sharing sharing = Sharing::per_size);

}  // namespace sluice::policy
