// How much each expert was used lately: calls, whose count halves every so many tokens.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/routing_log.h"

namespace sluice::engine {

class ExpertHeat {
 public:
  ExpertHeat(int n_layers, int n_experts);

  void add(const RoutingLog& log, int n_rows);                // of a step
  const std::vector<float>& values() const { return heat_; }  // [n_layers, n_experts]

 private:
  int n_experts_;
  std::vector<float> heat_;
};

}  // namespace sluice::engine
