// A gated DeltaNet over a step of many rows (Ops::delta_net), in three launches: what the rows
// bring, the recurrence, the gated norm. The bits are those of delta_net(), which takes the rows
// one after another with a block for each value head; it is for narrow steps. Pointers are device
// memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_net.h"

namespace sluice::backend::cuda {

// Of a row that is made: q and k of the key heads, v of the value heads; then for each of these
// decay, beta and two numbers that nobody reads.
constexpr int64_t wide_delta_cols(int64_t n_key_heads, int64_t n_value_heads, int64_t head_dim) {
  return (2 * n_key_heads + n_value_heads) * head_dim + 4 * n_value_heads;
}

struct WideDelta {
  DeltaNetStep of;
  float* made = nullptr;  // [n_rows, wide_delta_cols], between the launches
};
void wide_delta_net(const WideDelta& p, const Launch& how);

}  // namespace sluice::backend::cuda
