// Rows of float weights with rows of float inputs: the contract's eight chains for each pair, some
// rows and inputs at a time, so that chains overlap and what is loaded serves several of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/views.h"

namespace sluice::backend::cpu {

// out[i * n_rows + r] = row first + r of the weight . inputs[i]. Only F32, F16 and BF16.
void multiply_float(const WeightView& weight, int64_t first, int64_t n_rows,
                    std::span<const float* const> inputs, float* out);

}  // namespace sluice::backend::cpu
