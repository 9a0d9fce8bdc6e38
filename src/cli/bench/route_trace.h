// The routing of a recorded or generated trace in the place of a model's own, to measure with: the
// token at position p uses what the trace's step p used, and after its end the first again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "policy/trace/routing.h"

namespace sluice::cli {

class RouteTrace {
 public:
  // Reads as many steps as there can be positions. Of a step the best experts count, as many as the
  // model uses; steps that left a layer out (prompts may) are passed over, and further layers too.
  // Throws where it is no trace, or where it has fewer layers or experts than the model needs.
  RouteTrace(std::string path, const policy::RoutingShape& model, int n_positions);

  const std::string& path() const { return path_; }
  size_t n_steps() const { return experts_.size() / step_size_; }

  // As SessionOptions::reroute.
  void apply(int pos, int layer, std::span<int32_t> experts) const;

 private:
  void take(const policy::RoutingStep& step, const policy::RoutingShape& model);

  std::string path_;
  size_t n_used_;
  size_t step_size_;
  std::vector<int32_t> experts_;  // [n_steps, n_layers, n_used]
};

}  // namespace sluice::cli
