// Replays routing against a policy, a number of slots and simple models of machines: what would
// have hit, what would have been copied, and how long a token would have taken. Holds one step at a
// time, so memory is bounded by the cache, not by the trace.
//
// A hit is an expert that is resident when its layer looks it up; copies are made between steps,
// for every policy alike. Prefill tokens are replayed like all others, one by one, so that they
// warm the cache; only decode is counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "policy/cache/expert_cache.h"
#include "policy/trace/replay_account.h"
#include "policy/trace/routing_trace.h"

namespace sluice::policy {

// One cache, and any number of machines that its decisions are judged for:
// where CacheOptions::wait_cost is 0, decisions know of a machine only the copy
// cost, so that machines of one copy cost need one replay. Else they go by what
// the link of the first machine hides.
class Replay {
 public:
  // A fresh cache that holds `share` (0 to 1) of all experts; every other option as in `options`,
  // whose layers and n_experts are not read. A profile says what it holds before the first step.
  Replay(const RoutingShape& shape, CacheOptions options, double share,
         std::span<const CostModel> costs, const RoutingProfile* profile = nullptr);

  void step(const RoutingStep& step);

  ReplayResult result(size_t machine = 0) const { return account_.result(machine); }

 private:
  ExpertCache cache_;
  ReplayAccount account_;
};

// Gives the next step; false: there is none.
using StepSource = std::function<bool(RoutingStep&)>;

StepSource steps_of(const RoutingTrace& trace);  // the trace must outlive it

// A whole trace and one machine.
ReplayResult replay(const RoutingShape& shape, const StepSource& next, CacheOptions options,
                    double share, const CostModel& cost);

}  // namespace sluice::policy
