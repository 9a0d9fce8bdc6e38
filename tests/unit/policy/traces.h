// Traces for the tests: the recorded ones, where they lie beside the checkout, and small ones made
// by hand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "policy/trace/belady.h"
#include "policy/trace/replay.h"
#include "policy/trace/trace_csv.h"
#include "policy/trace/trace_generator.h"

namespace sluice::policy::test {

inline const std::vector<std::string> kRecorded = {"qwen3-30b-a3b", "gpt-oss-120b"};
inline const std::vector<PolicyKind> kPolicies = {PolicyKind::mixture,    PolicyKind::lru,
                                                  PolicyKind::lru_global, PolicyKind::slru,
                                                  PolicyKind::lfu,        PolicyKind::dlfu};

// Nothing where the recorded traces are not there.
inline std::optional<RoutingTrace> recorded(const std::string& name) {
  std::ifstream file(cat(SLUICE_TEST_DATA, "/../../../shared/traces/", name, ".route.csv"));
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return parse_trace_csv(text.str());
}

// A step of experts given layer by layer, in decode.
inline RoutingStep step_of(const std::vector<std::vector<int>>& layers) {
  RoutingStep step;
  step.begin = {0};
  for (const std::vector<int>& layer : layers) {
    for (const int expert : layer) {
      step.routed.push_back({ExpertId(expert), 1.0f / static_cast<float>(layer.size())});
    }
    step.begin.push_back(static_cast<int>(step.routed.size()));
  }
  return step;
}

inline ReplayResult replay_at(const RoutingTrace& trace, PolicyKind policy, double percent,
                              CacheOptions options = {}) {
  options.policy = policy;
  return replay(trace.header.shape, steps_of(trace), options, percent / 100.0, {});
}

inline double hit_percent(const RoutingTrace& trace, PolicyKind policy, double percent) {
  return 100.0 * replay_at(trace, policy, percent).hit_rate();
}

inline double belady_percent(const RoutingTrace& trace, double percent,
                             Sharing sharing = Sharing::per_size) {
  return 100.0 * replay_belady(trace, percent / 100.0, {}, sharing).hit_rate();
}

}  // namespace sluice::policy::test
