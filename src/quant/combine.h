// Part D of the numeric contract (docs/decisions/0002): the weighted sum of expert outputs, in the
// order of the router's ranks and never in order of completion, then the residual.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace sluice::quant {

// weights: one per expert, by rank, at least one. rows: [weights.size(), x.size()] f32, row_stride
// floats apart. shared_row: [x.size()] or null for a model without a shared expert.
//
//   v = w_0*o_0;  v = fma(w_k, o_k, v);  v = fma(shared_weight, shared, v);  x = x + v
void combine(std::span<const float> weights, const float* rows, int64_t row_stride,
             const float* shared_row, float shared_weight, std::span<float> x);

}  // namespace sluice::quant
