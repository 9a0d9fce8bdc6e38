// See bench_cost.h.
// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/bench_cost.h"

#include <algorithm>

namespace sluice::cli {

double BenchCost::decode_bytes(int n_tokens, int depth) const {
  const double positions = depth + (n_tokens + 1) / 2.0;
  return static_cast<double>(weight_bytes) + positions * static_cast<double>(kv_bytes);
}

double BenchCost::prefill_multiply_adds(int n_tokens) const {
  return static_cast<double>(layer_multiply_adds) +
         static_cast<double>(output_multiply_adds) / n_tokens;
}

BenchCost cost_of(const policy::ModelShape& shape, const SessionOptions& session) {
  // A whole page, since that is what is priced.
  const policy::Workload page{.n_ctx = policy::kKvPageTokens,
                              .k_type = static_cast<policy::KvType>(session.k_type),
                              .v_type = static_cast<policy::KvType>(session.v_type)};
  BenchCost cost;
  cost.weight_bytes =
      shape.output_bytes + shape.embedding_bytes / static_cast<uint64_t>(shape.n_vocab);
  cost.output_multiply_adds = shape.output_elems;
  for (const policy::LayerShape& layer : shape.layers) {
    const auto n_used = static_cast<uint64_t>(std::min(shape.n_experts_used, layer.n_experts));
    cost.expert_bytes += n_used * layer.expert_bytes;
    cost.weight_bytes += layer.trunk_bytes + n_used * layer.expert_bytes;
    cost.kv_bytes += policy::kv_bytes(layer, page) / policy::kKvPageTokens;
    cost.layer_multiply_adds += layer.trunk_elems + n_used * layer.expert_elems;
  }
  return cost;
}

}  // namespace sluice::cli
