// What a replay finds, and the machines it is judged for: hits by layer, copies, and the time that
// both stand for. Shared by the policies' replay and Belady's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/machine.h"
#include "policy/trace/routing.h"

namespace sluice::policy {

// A machine, and how it goes about misses.
struct CostModel : MachineRates {
  // Misses are copied before their layer goes on, and the GPU computes them; the CPU computes none.
  bool streams_misses = false;

  // What a copy costs in uses saved, for CacheOptions: in what it takes from
  // the CPU where the layers hide it, in time where it is waited for.
  double copy_cost() const;
  double wait_cost() const;
};

// Mean milliseconds per decoded token. In a layer the GPU computes hits while the CPU computes
// misses; copies run beside all of it, and only what they take longer is waited for.
struct TokenTime {
  double gpu_ms = 0.0;  // hits; where misses are streamed, these too
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

// Counts once and keeps the time of each machine.
class ReplayAccount {
 public:
  ReplayAccount(const RoutingShape& shape, std::span<const CostModel> costs);
  ReplayAccount(const RoutingShape& shape, const CostModel& cost)
      : ReplayAccount(shape, std::span(&cost, 1)) {}

  void begin_step(Phase phase) { counted_ = phase == Phase::decode; }
  void layer(int layer, int n_hits, int n_misses);
  // What the first machine's link moves while the layers of this step last.
  uint64_t hidden_bytes() const;
  void end_step(uint64_t n_copies, uint64_t copied_bytes);

  ReplayResult result(size_t machine = 0) const;

 private:
  struct Machine {
    CostModel cost;
    double step_ms = 0.0;  // of the layers so far
    TokenTime sum;
  };

  RoutingShape shape_;
  std::vector<Machine> machines_;
  bool counted_ = false;
  std::vector<uint64_t> lookups_, hits_;  // by layer
  uint64_t n_tokens_ = 0;
  uint64_t n_copies_ = 0;
  uint64_t copied_bytes_ = 0;
  uint64_t missed_bytes_ = 0;
};

}  // namespace sluice::policy
