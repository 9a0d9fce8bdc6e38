// Traces for the tests: those of the demo models, which ship with the tests (tests/data/traces);
// those of large models, where they lie beside the checkout; and small ones made by hand.
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

inline const std::vector<PolicyKind> kPolicies = {PolicyKind::mixture,    PolicyKind::lru,
                                                  PolicyKind::lru_global, PolicyKind::slru,
                                                  PolicyKind::lfu,        PolicyKind::dlfu};

inline const std::vector<std::string> kShipped = {"demo-attn", "demo-hybrid"};
inline const std::vector<std::string> kLargeModels = {"qwen3-30b-a3b", "gpt-oss-120b"};

// Nothing where there is no such file.
inline std::optional<std::string> text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// One of kShipped.
inline RoutingTrace shipped(const std::string& name) {
  const auto bytes = text_of(cat(SLUICE_TEST_DATA, "/traces/", name, ".slrt"));
  if (!bytes) throw Error(Errc::bad_file, cat("tests/data/traces has no ", name, ".slrt"));
  return decode_trace(std::as_bytes(std::span(*bytes)));
}

// One of kLargeModels; nothing where these recordings do not lie beside the checkout.
inline std::optional<RoutingTrace> of_large_model(const std::string& name) {
  const auto text = text_of(cat(SLUICE_TEST_DATA, "/../../../shared/traces/", name, ".route.csv"));
  if (!text) return std::nullopt;
  return parse_trace_csv(*text);
}

struct Recording {
  std::string name;
  RoutingTrace trace;
};

// All there are: never none.
inline std::vector<Recording> recordings() {
  std::vector<Recording> all;
  for (const std::string& name : kShipped) all.push_back({name, shipped(name)});
  for (const std::string& name : kLargeModels) {
    if (auto trace = of_large_model(name)) all.push_back({name, std::move(*trace)});
  }
  return all;
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
