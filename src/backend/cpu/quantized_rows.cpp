// See quantized_rows.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/quantized_rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace sluice::backend::cpu {
namespace {

float sum_of_16(const int8_t* q) {
  int total = 0;
  for (int i = 0; i < 16; ++i) total += q[i];
  return static_cast<float>(total);
}

// out[i][r] = rows[r][i], words of four bytes.
template <typename T>
void put_side_by_side(std::span<const T* const> rows, int64_t n_words, T* out) {
  constexpr size_t kWord = 4 / sizeof(T);  // values in a word
  const auto put = [&](auto n_rows) {
    for (int64_t i = 0; i < n_words; ++i) {
      for (size_t r = 0; r < n_rows; ++r, out += kWord) {
        std::memcpy(out, rows[r] + static_cast<size_t>(i) * kWord, 4);
      }
    }
  };
  if (rows.size() == kInputsTogether) {  // a constant, which the compiler unrolls
    put(std::integral_constant<size_t, kInputsTogether>());
  } else {
    put(rows.size());
  }
}

}  // namespace

void RowSums::reserve(int64_t n_rows, int64_t n_cols) {
  n_cols_ = n_cols;
  by_16_ = memory_.get(n_rows * (n_cols / 16 + n_cols / 32));
  by_32_ = by_16_ + n_rows * n_cols / 16;
}

void RowSums::set(int64_t r, const int8_t* q) {
  float* const by_16 = by_16_ + r * n_cols_ / 16;
  float* const by_32 = by_32_ + r * n_cols_ / 32;
  for (int64_t b = 0; b < n_cols_ / 32; ++b) {
    by_16[2 * b] = sum_of_16(q + 32 * b);
    by_16[2 * b + 1] = sum_of_16(q + 32 * b + 16);
    by_32[b] = by_16[2 * b] + by_16[2 * b + 1];
  }
}

void QuantizedRows::reserve(int64_t n_rows, int64_t n_cols) {
  n_rows_ = n_rows;
  n_cols_ = n_cols;
  q_ = integers_.get(n_rows * n_cols);
  d_ = floats_.get(n_rows * n_cols / 32 * 5);
  y_ = d_ + n_rows * n_cols / 32;
  sum32_ = y_ + n_rows * n_cols / 32;
  sum16_ = sum32_ + n_rows * n_cols / 32;
}

QuantizedRows::Memory QuantizedRows::memory_of(const RowBatch& batch, int64_t g) const {
  const int64_t begin = g * kInputsTogether, at = (batch.first + begin) * n_cols_;
  CHECK(begin < batch.n_rows && batch.first + begin < n_rows_);
  const int64_t n = std::min<int64_t>(kInputsTogether, batch.n_rows - begin);
  return {q_ + at,          d_ + at / 32,     y_ + at / 32,
          sum16_ + at / 16, sum32_ + at / 32, static_cast<int>(n)};
}

QuantizedInputs QuantizedRows::group(const RowBatch& batch, int64_t g) const {
  const auto [q, d, y, sum16, sum32, n] = memory_of(batch, g);
  return {q, d, y, sum16, sum32, n};
}

void QuantizedRows::set(const RowBatch& batch, int64_t r, int64_t first, int64_t n,
                        const float* x) {
  const auto [q, d, y, sum16, sum32, n_rows] = memory_of(batch, r / kInputsTogether);
  const int64_t row = r % kInputsTogether;
  for (int64_t i = 0; i < n; i += 32) {
    int8_t values[32];
    const int64_t block = (first + i) / 32, at = block * n_rows + row;
    quant::quantize_activation({x + i, 32}, values, d + at, y + at);
    for (int64_t k = 0; k < 8; ++k) {
      std::memcpy(q + 4 * ((8 * block + k) * n_rows + row), values + 4 * k, 4);
    }
    const float low = sum_of_16(values), high = sum_of_16(values + 16);
    sum16[2 * block * n_rows + row] = low;
    sum16[(2 * block + 1) * n_rows + row] = high;
    sum32[at] = low + high;
  }
}

void QuantizedRows::gather(const RowBatch& batch, int64_t g,
                           std::span<const QuantizedInputs> rows) {
  const auto [q, d, y, sum16, sum32, n] = memory_of(batch, g);
  CHECK(std::ssize(rows) == n);
  const int64_t n_blocks = n_cols_ / 32;
  const auto copy = [&]<typename T>(const T* QuantizedInputs::*field, int64_t n_words, T* out) {
    const T* from[kInputsTogether] = {};
    for (size_t r = 0; r < rows.size(); ++r) from[r] = rows[r].*field;
    put_side_by_side<T>({from, rows.size()}, n_words, out);
  };
  copy(&QuantizedInputs::q, 8 * n_blocks, q);
  copy(&QuantizedInputs::d, n_blocks, d);
  copy(&QuantizedInputs::y, n_blocks, y);
  copy(&QuantizedInputs::sum16, 2 * n_blocks, sum16);
  copy(&QuantizedInputs::sum32, n_blocks, sum32);
}

}  // namespace sluice::backend::cpu
