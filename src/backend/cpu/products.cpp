// See products.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/products.h"

#include <algorithm>

#include "backend/cpu/float_products.h"

namespace sluice::backend::cpu {
namespace {

// Inputs whose int8 rows stay in L2 while all rows of a piece pass by.
constexpr int64_t kInputsAtATime = 128;

void multiply_quantised(const Kernels& kernels, const WeightView& weight, int64_t first,
                        int64_t n_rows, const InputRows& inputs, int64_t n_inputs, float* out) {
  const MultiplyRows multiply_rows = kernels.multiply_rows(weight.type);
  const WeightRows rows{weight.row(first), n_rows, weight.n_cols, weight.layout};
  const std::span all(inputs.q8);
  for (int64_t i = 0; i < n_inputs; i += kInputsAtATime) {
    const int64_t n = std::min(kInputsAtATime, n_inputs - i);
    multiply_rows(rows, all.subspan(static_cast<size_t>(i), static_cast<size_t>(n)),
                  out + i * n_rows, n_rows);
  }
}

}  // namespace

void multiply(const Kernels& kernels, const WeightView& weight, int64_t first, int64_t n_rows,
              const InputRows& inputs, int64_t n_inputs, float* out) {
  if (quant::is_float(weight.type)) {
    multiply_float(weight, first, n_rows,
                   std::span(inputs.f32).first(static_cast<size_t>(n_inputs)), out);
  } else {
    multiply_quantised(kernels, weight, first, n_rows, inputs, n_inputs, out);
  }
}

}  // namespace sluice::backend::cpu
