// Adds up what a replay finds: hits by layer, copies, and the time they stand for. Shared by the
// policies' replay and Belady's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "policy/replay.h"

namespace sluice::policy {

class ReplayAccount {
 public:
  ReplayAccount(const RoutingShape& shape, const CostModel& cost);

  void begin_step(Phase phase) { counted_ = phase == Phase::decode; }
  void layer(int layer, int n_hits, int n_misses);
  void end_step(uint64_t n_copies, uint64_t copied_bytes);
  ReplayResult result() const;

 private:
  RoutingShape shape_;
  CostModel cost_;
  bool counted_ = false;
  std::vector<uint64_t> lookups_, hits_;  // by layer
  double step_ms_ = 0.0;                  // of the layers so far
  ReplayResult sum_;
};

}  // namespace sluice::policy
