// See row_dots.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/row_dots.h"

#include "quant/decode.h"
#include "quant/dot.h"

namespace sluice::backend::cpu {

void row_dots(const WeightView& weight, int64_t row, const InputRows& inputs, int64_t n_inputs,
              std::vector<float>& unpacked, float* out) {
  const std::byte* w = weight.row(row);
  const int64_t n = weight.n_cols;
  if (!quant::is_float(weight.type)) {
    quant::dot_rows(weight.type, w, n, inputs.q8.data(), static_cast<int>(n_inputs), out);
    return;
  }
  if (n_inputs == 1) {
    out[0] = quant::dot_float(weight.type, w, inputs.f32[0], n);
    return;
  }
  // Widening is exact, so a row widened once gives the same bits as one widened for each input.
  unpacked.resize(static_cast<size_t>(n));
  quant::decode_row(weight.type, w, unpacked);
  for (int64_t i = 0; i < n_inputs; ++i) {
    out[i] = quant::dot_f32(unpacked.data(), inputs.f32[static_cast<size_t>(i)], n);
  }
}

}  // namespace sluice::backend::cpu
