// One weight row against many input rows, whatever the weight's type: the inner step of every
// matrix product on the CPU. The row is unpacked once for all of them, and each result is the
// numeric contract's, so it does not depend on how many there are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backend/views.h"
#include "quant/activation.h"

namespace sluice::backend::cpu {

// The input rows of a product: pointers to plain rows for float weights, to int8 rows for others.
struct InputRows {
  std::vector<const float*> f32;
  std::vector<quant::ActivationView> q8;
};

// out[i] = row . input i, for all inputs of the form the weight's type takes. `unpacked` is the
// caller's scratch for one row of floats.
void row_dots(const WeightView& weight, int64_t row, const InputRows& inputs, int64_t n_inputs,
              std::vector<float>& unpacked, float* out);

}  // namespace sluice::backend::cpu
