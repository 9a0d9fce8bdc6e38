// What routing looks like to the policies: the shape of a model's expert layers, and what one step
// chose in each of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.h"
#include "base/routed_expert.h"

namespace sluice::policy {

// Limits of the formats, far above any known model; they keep a lie in a file from sizing memory.
constexpr int kMaxLayers = 1024;
constexpr int kMaxExperts = 4096;
constexpr int kMaxExpertsUsed = 255;

struct RoutingShape {
  int n_layers = 0;
  int n_experts = 0;                   // of every layer
  int n_experts_used = 0;              // most that one token uses in a layer
  std::vector<uint64_t> expert_bytes;  // of one expert, by layer; 0: the layer has none

  int64_t n_total() const { return static_cast<int64_t>(n_layers) * n_experts; }
  friend bool operator==(const RoutingShape&, const RoutingShape&) = default;
};

// Throws Errc::bad_file with the first thing that is impossible; `where` opens the text.
void check_shape(const RoutingShape& shape, const char* where);

struct ExpertKey {
  LayerId layer;
  ExpertId expert;
  friend constexpr auto operator<=>(ExpertKey, ExpertKey) = default;
};

using sluice::RoutedExpert;

enum class Phase : uint8_t { prefill = 0, decode = 1 };

// One token's way through the model. Layers may route nothing: the last one does not in prefill,
// but for the last token.
struct RoutingStep {
  Phase phase = Phase::decode;
  TokenId token = -1;                // -1: not recorded
  std::vector<RoutedExpert> routed;  // all layers, one after the other, best first in each
  std::vector<int> begin;            // [n_layers + 1], where each layer's begin in `routed`

  std::span<const RoutedExpert> layer(int l) const {
    const auto i = static_cast<size_t>(l);
    return std::span(routed).subspan(static_cast<size_t>(begin[i]),
                                     static_cast<size_t>(begin[i + 1] - begin[i]));
  }
  friend bool operator==(const RoutingStep&, const RoutingStep&) = default;
};

}  // namespace sluice::policy
