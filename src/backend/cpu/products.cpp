// See products.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/products.h"

#include <algorithm>

#include "backend/cpu/float_products.h"

namespace sluice::backend::cpu {
namespace {

// Groups of inputs whose int8 rows stay in L2 while all rows of a piece pass by.
constexpr size_t kGroupsAtATime = 128 / kInputsTogether;

void multiply_quantised(const Kernels& kernels, const WeightView& weight, int64_t first,
                        int64_t n_rows, const InputRows& inputs, float* out) {
  const MultiplyRows multiply_rows = kernels.multiply_rows(weight.type);
  const WeightRows rows{weight.row(first), n_rows, weight.n_cols, weight.layout};
  for (std::span rest(inputs.q8); !rest.empty();) {
    const auto some = rest.first(std::min(kGroupsAtATime, rest.size()));
    multiply_rows(rows, some, out, n_rows);
    for (const QuantizedInputs& group : some) out += group.n_rows * n_rows;
    rest = rest.subspan(some.size());
  }
}

}  // namespace

void multiply(const Kernels& kernels, const WeightView& weight, int64_t first, int64_t n_rows,
              const InputRows& inputs, float* out) {
  if (quant::is_float(weight.type)) {
    multiply_float(weight, first, n_rows, inputs.f32, out);
  } else {
    multiply_quantised(kernels, weight, first, n_rows, inputs, out);
  }
}

}  // namespace sluice::backend::cpu
