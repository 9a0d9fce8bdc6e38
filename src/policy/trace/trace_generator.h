// Makes routing traces of any length that behave like recorded ones: a popularity of experts that
// grows more uneven with depth, topics that shift it, tokens that recur and route alike each time,
// and an echo of the previous token. Or, as no text is, every expert as likely as any other.
// Calibrated on Qwen3-30B-A3B (top-6 of 128 in 48 layers): the tests compare hit rates of LRU and
// of Belady's optimum with those of the recording.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "policy/trace/routing_trace.h"

namespace sluice::policy {

struct GeneratorOptions {
  RoutingShape shape;  // see generator_shape()
  uint64_t seed = 3;
  int n_prefill = 28;
  int n_decode = 128;
  int topic_steps = 400;    // until the topic changes
  bool is_uniform = false;  // each token routes to any experts, whatever came before
};

// Layers of equal experts.
RoutingShape generator_shape(int n_layers, int n_experts, int n_experts_used,
                             uint64_t expert_bytes = 3'000'000);

class TraceGenerator {
 public:
  explicit TraceGenerator(const GeneratorOptions& options);

  TraceHeader header() const;

  // False: the trace is at its end. The same options give the same trace.
  bool next(RoutingStep& step);

 private:
  TokenId draw_token();
  double draw();  // uniform in [0, 1)
  void start_topic();
  void route_layer(int layer, RoutingStep& step);

  GeneratorOptions options_;
  int n_steps_ = 0;
  uint64_t n_draws_ = 0;
  int topic_ = 0;
  std::vector<double> rank_sums_;      // of the frequencies of a topic's tokens
  std::vector<TokenId> recent_;        // tokens, a ring
  std::vector<float> popularity_;      // [n_layers, n_experts], of the topic, scaled by depth
  std::vector<float> token_, before_;  // [n_layers, n_experts], how this and the last token pull
  std::vector<std::pair<float, int>> scores_;  // [n_experts], of one layer
};

RoutingTrace generate_trace(const GeneratorOptions& options);

}  // namespace sluice::policy
