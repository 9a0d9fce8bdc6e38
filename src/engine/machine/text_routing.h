// Routing as a text makes it, for measuring: some experts are used far more than others, a topic
// keeps its own, and the next token uses much of what this one did. Uniformly random tokens do none
// of this, and a cache that is tried with them looks worse than it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "engine/step/forced_routes.h"
#include "model/config.h"
#include "policy/trace/routing_profile.h"
#include "policy/trace/trace_generator.h"

namespace sluice::engine {

class TextRouting {
 public:
  // With a profile, the experts used most are the profile's own. Begins at the first token.
  TextRouting(const model::Config& config, const policy::RoutingProfile* profile);

  void next_token();

  // Of this token, best first: n_experts_used, all different.
  std::span<const int32_t> experts(LayerId layer) const;

  // Puts them in the place of what a step routed; this must outlive it.
  RouteOverride override_routes() const;

 private:
  int n_layers_, n_experts_, n_used_;
  policy::TraceGenerator generator_;
  policy::RoutingStep step_;
  std::vector<int32_t> names_;    // [n_layers, n_experts], of the generator's experts
  std::vector<int32_t> experts_;  // [n_layers, n_used]
};

}  // namespace sluice::engine
