// Some rows of a weight with all input rows, whatever the weight's type: the inner step of every
// matrix product on the CPU. A result does not depend on what is computed with it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "backend/cpu/quantized_rows.h"
#include "backend/views.h"

namespace sluice::backend::cpu {

// The input rows of a product: plain rows for float weights, int8 rows in groups for others.
struct InputRows {
  std::vector<const float*> f32;
  std::vector<QuantizedInputs> q8;

  void set_q8(const QuantizedRows& rows, const RowBatch& batch) {
    q8.clear();
    for (int64_t g = 0; g < batch.n_groups(); ++g) q8.push_back(rows.group(batch, g));
  }
};

// How many weight rows a thread takes at a time. With many inputs each of them is read for every
// few rows, so more rows at a time save their traffic.
constexpr int64_t rows_per_piece(int64_t n_inputs) { return n_inputs < 32 ? 32 : 64; }

// out[i][r] = row first + r of the weight . input i, r < n_rows. out: [number of inputs, n_rows].
void multiply(const Kernels& kernels, const WeightView& weight, int64_t first, int64_t n_rows,
              const InputRows& inputs, float* out);

}  // namespace sluice::backend::cpu
