// See planner_cache.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/plan/planner_cache.h"

#include <algorithm>

#include "base/check.h"
#include "policy/trace/replay_account.h"

namespace sluice::policy {
namespace {

CostModel cost_model(const Plan& plan, const Hardware& hardware) {
  CostModel cost{hardware};
  // The link does the CPU's part, and what it has brought needs not cross again to stay: VRAM reads
  // and writes it once more.
  if (plan.mode == Mode::streamed) {
    cost.cpu_gbps = hardware.link_gbps;
    cost.copy_interference = 2.0 * hardware.link_gbps / hardware.gpu_gbps;
    cost.streams_misses = true;
  }
  return cost;
}

}  // namespace

CacheOptions cache_options(const Plan& plan, const ModelShape& model, const Hardware& hardware,
                           PolicyKind policy) {
  CHECK(plan.layers.size() == model.layers.size());
  const CostModel cost = cost_model(plan, hardware);
  CacheOptions options{
      .policy = policy, .copy_cost = cost.copy_cost(), .wait_cost = cost.wait_cost()};
  for (size_t i = 0; i < model.layers.size(); ++i) {
    const LayerShape& layer = model.layers[i];
    const LayerPlan& planned = plan.layers[i];
    const bool whole = layer.n_experts > 0 && planned.n_slots == layer.n_experts;
    options.n_experts = std::max(options.n_experts, layer.n_experts);
    options.layers.push_back({.expert_bytes = planned.cached ? layer.expert_bytes : 0,
                              .n_slots = planned.n_slots,
                              .pinned = whole});
  }
  return options;
}

uint64_t hidden_bytes(const Plan& plan, const Hardware& hardware) {
  if (plan.n_gpu_layers == 0) return 0;
  return static_cast<uint64_t>(hardware.link_gbps * 1e9 * plan.step_seconds());
}

}  // namespace sluice::policy
