// Replays routing against a policy, a number of slots and a simple model of a machine: what would
// have hit, what would have been copied, and how long a token would have taken. Holds one step at a
// time, so memory is bounded by the cache, not by the trace.
//
// A hit is an expert that is resident when its layer looks it up; copies are made between steps,
// for every policy alike. Prefill tokens are replayed like all others, one by one, so that they
// warm the cache; only decode is counted.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "policy/expert_cache.h"
#include "policy/routing_trace.h"

namespace sluice::policy {

// Rates in GB/s of 10^9 bytes.
struct CostModel {
  double link_gbps = 25.0;
  double cpu_gbps = 60.0;      // expert kernels of all cores
  double gpu_gbps = 500.0;     // reading weights from VRAM
  double handshake_us = 18.0;  // in every layer that has a miss

  // Bytes that the CPU's workers cannot read for each byte that a copy reads beside them: both
  // drink from the same memory. Measured on three machines: 0.27, 0.41, 0.96.
  double copy_interference = 0.4;

  // What a copy costs in uses saved, for CacheOptions::copy_cost.
  double copy_cost() const;
};

// Mean milliseconds per decoded token. In a layer the GPU computes hits while the CPU computes
// misses; copies run beside all of it, and only what they take longer is waited for.
struct TokenTime {
  double gpu_ms = 0.0;  // hits
  double cpu_ms = 0.0;  // misses, slowed by copies
  double handshake_ms = 0.0;
  double copy_ms = 0.0;       // the link is busy
  double copy_wait_ms = 0.0;  // of it, not hidden behind the layers
  double total_ms = 0.0;
};

struct ReplayResult {
  uint64_t n_tokens = 0;  // decoded
  uint64_t n_lookups = 0;
  uint64_t n_hits = 0;
  uint64_t n_copies = 0;  // in decode
  uint64_t copied_bytes = 0;
  TokenTime time;
  std::vector<double> layer_hit_rate;  // [n_layers]; 0 where nothing was looked up

  double hit_rate() const {
    return n_lookups == 0 ? 0.0 : static_cast<double>(n_hits) / static_cast<double>(n_lookups);
  }
};

// Gives the next step; false: there is none.
using StepSource = std::function<bool(RoutingStep&)>;

StepSource steps_of(const RoutingTrace& trace);  // the trace must outlive it

ReplayResult replay(const RoutingShape& shape, const StepSource& next, ExpertCache& cache,
                    const CostModel& cost);

// The same with a fresh cache that holds `share` (0 to 1) of all experts; every other option as in
// `options`, whose layers and n_experts are not read.
ReplayResult replay(const RoutingShape& shape, const StepSource& next, CacheOptions options,
                    double share, const CostModel& cost);

}  // namespace sluice::policy
