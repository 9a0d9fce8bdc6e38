// What a plan means for the expert cache that carries it out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/cache/expert_cache.h"
#include "policy/plan/planner.h"

namespace sluice::policy {

// Slots and pins of the plan's layers, and what a copy costs on the machine. A layer that is wholly
// in VRAM is pinned, wished or not: the host holds none of its experts, so none may leave. A layer
// whose experts stay on the CPU has a size of 0, a pool without slots: it can gain none.
// The model is the one that was planned, with its MTP blocks as layers where these were wished for;
// it has experts.
CacheOptions cache_options(const Plan& plan, const ModelShape& model, const Hardware& hardware,
                           PolicyKind policy);

// What the link moves while a decode step of the plan lasts, by prediction, for
// ExpertCache::end_step. 0 without GPU layers.
uint64_t hidden_bytes(const Plan& plan, const Hardware& hardware);

}  // namespace sluice::policy
