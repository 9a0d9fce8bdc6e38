// See quantized_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/quantized_rows.h"

namespace sluice::backend::cpu {

void RowSums::reserve(int64_t n_rows, int64_t n_cols) {
  n_cols_ = n_cols;
  by_16_ = memory_.get(n_rows * (n_cols / 16 + n_cols / 32));
  by_32_ = by_16_ + n_rows * n_cols / 16;
}

void RowSums::set(int64_t r, int64_t first, int64_t n, const int8_t* q) {
  const auto sum = [](const int8_t* values) {
    int total = 0;
    for (int i = 0; i < 16; ++i) total += values[i];
    return static_cast<float>(total);
  };
  float* const by_16 = by_16_ + (r * n_cols_ + first) / 16;
  float* const by_32 = by_32_ + (r * n_cols_ + first) / 32;
  for (int64_t b = 0; b < n / 32; ++b) {
    by_16[2 * b] = sum(q + 32 * b);
    by_16[2 * b + 1] = sum(q + 32 * b + 16);
    by_32[b] = by_16[2 * b] + by_16[2 * b + 1];
  }
}

void QuantizedRows::reserve(int64_t n_rows, int64_t n_cols) {
  n_cols_ = n_cols;
  q_ = integers_.get(n_rows * n_cols);
  d_ = scales_.get(n_rows * n_cols / 16);
  y_ = d_ + n_rows * n_cols / 32;
  sums_.reserve(n_rows, n_cols);
}

void QuantizedRows::set(int64_t r, int64_t first, int64_t n, const float* x) {
  const int64_t at = r * n_cols_ + first;
  quant::quantize_activation({x, static_cast<size_t>(n)}, q_ + at, d_ + at / 32, y_ + at / 32);
  sums_.set(r, first, n, q_ + at);
}

}  // namespace sluice::backend::cpu
