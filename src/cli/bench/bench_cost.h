// What a token costs at least: the bytes that decode must read for it, and its multiply-adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "policy/plan/pricing.h"
#include "sluice/sluice.h"

namespace sluice::cli {

struct BenchCost {
  uint64_t weight_bytes = 0;  // trunk, the experts used, output, one row of the embedding
  uint64_t expert_bytes = 0;  // of these: the experts used
  uint64_t kv_bytes = 0;      // of one position, in all layers
  // One for each weight a token meets; attention to past tokens is not among them.
  uint64_t layer_multiply_adds = 0;
  uint64_t output_multiply_adds = 0;

  // Of the mean token of `n_tokens` that are decoded at this depth: it attends to itself and to all
  // before it.
  double decode_bytes(int n_tokens, int depth) const;
  // Of the mean token of a prompt; only the last one has an output.
  double prefill_multiply_adds(int n_tokens) const;
};

BenchCost cost_of(const policy::ModelShape& shape, const SessionOptions& session);

}  // namespace sluice::cli
