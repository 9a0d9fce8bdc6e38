// See replay.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/trace/replay.h"

#include <utility>

namespace sluice::policy {

namespace {

CacheOptions with_share(CacheOptions options, const RoutingShape& shape, double share) {
  options.n_experts = shape.n_experts;
  options.layers = share_slots(shape, share);
  return options;
}

}  // namespace

Replay::Replay(const RoutingShape& shape, CacheOptions options, double share,
               std::span<const CostModel> costs, const RoutingProfile* profile)
    : cache_(with_share(std::move(options), shape, share)), account_(shape, costs) {
  cache_.fill(profile);
}

void Replay::step(const RoutingStep& step) {
  account_.begin_step(step.phase);
  cache_.begin_step(step.phase);
  for (int l = 0; l + 1 < static_cast<int>(step.begin.size()); ++l) {
    const auto routed = step.layer(l);
    const int n_hits = cache_.touch(LayerId(l), routed);
    account_.layer(l, n_hits, static_cast<int>(routed.size()) - n_hits);
  }
  const uint64_t bytes_before = cache_.counts().copied_bytes;
  const size_t n_copies = cache_.end_step(account_.hidden_bytes()).size();
  account_.end_step(n_copies, cache_.counts().copied_bytes - bytes_before);
}

StepSource steps_of(const RoutingTrace& trace) {
  return [&trace, i = size_t{0}](RoutingStep& step) mutable {
    if (i == trace.steps.size()) return false;
    step = trace.steps[i++];
    return true;
  };
}

ReplayResult replay(const RoutingShape& shape, const StepSource& next, CacheOptions options,
                    double share, const CostModel& cost) {
  Replay replay(shape, std::move(options), share, std::span(&cost, 1));
  RoutingStep step;
  while (next(step)) replay.step(step);
  return replay.result();
}

}  // namespace sluice::policy
