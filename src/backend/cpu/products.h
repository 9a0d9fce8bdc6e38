// Some rows of a weight with all input rows, whatever the weight's type: the inner step of every
// matrix product on the CPU. A result does not depend on what is computed with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/quantized_rows.h"
#include "backend/views.h"

namespace sluice::backend::cpu {

// The input rows of a product: plain rows for float weights, int8 rows for others.
struct InputRows {
  std::vector<const float*> f32;
  std::vector<QuantizedRow> q8;

  void resize(int64_t n) {
    f32.resize(static_cast<size_t>(n));
    q8.resize(static_cast<size_t>(n));
  }
};

// How many weight rows a thread takes at a time. With many inputs each of them is read for every
// few rows, so more rows at a time save their traffic.
constexpr int64_t rows_per_piece(int64_t n_inputs) { return n_inputs < 32 ? 32 : 64; }

// out[i][r] = row first + r of the weight . input i, r < n_rows. out: [n_inputs, n_rows].
void multiply(const Kernels& kernels, const WeightView& weight, int64_t first, int64_t n_rows,
              const InputRows& inputs, int64_t n_inputs, float* out);

}  // namespace sluice::backend::cpu
