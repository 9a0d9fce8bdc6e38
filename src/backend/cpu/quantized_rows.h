// Input rows as the kernels take them: int8 blocks of the numeric contract, part A, and the sums of
// the integers that kernels correct by, kInputsTogether rows side by side.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/scratch.h"
#include "quant/activation.h"

namespace sluice::backend::cpu {

// The sums of rows that are quantised already, one row behind the other.
class RowSums {
 public:
  void reserve(int64_t n_rows, int64_t n_cols);

  void set(int64_t r, const int8_t* q);

  const float* by_16(int64_t r) const { return by_16_ + r * n_cols_ / 16; }
  const float* by_32(int64_t r) const { return by_32_ + r * n_cols_ / 32; }

 private:
  int64_t n_cols_ = 0;
  Scratch<float> memory_;
  float* by_16_ = nullptr;
  float* by_32_ = nullptr;
};

// Rows that are multiplied with the same weights: a place in QuantizedRows.
struct RowBatch {
  int64_t first = 0;  // a multiple of kInputsTogether
  int64_t n_rows = 0;

  int64_t n_groups() const { return (n_rows + kInputsTogether - 1) / kInputsTogether; }
  int64_t end() const { return first + n_groups() * kInputsTogether; }  // where the next may begin
};

// Rows of several batches. Different threads may write different parts.
class QuantizedRows {
 public:
  // Room for n_rows rows of n_cols values, n_cols a multiple of 32.
  void reserve(int64_t n_rows, int64_t n_cols);

  // Quantises n values into columns from `first` on, both multiples of 32, of the batch's row r.
  void set(const RowBatch& batch, int64_t r, int64_t first, int64_t n, const float* x);

  // Copies the batch's group g from as many rows, each alone.
  void gather(const RowBatch& batch, int64_t g, std::span<const QuantizedInputs> rows);

  // Rows [g * kInputsTogether, (g + 1) * kInputsTogether) of the batch, as far as it goes.
  QuantizedInputs group(const RowBatch& batch, int64_t g) const;

 private:
  struct Memory {
    int8_t* q;
    float *d, *y, *sum16, *sum32;
    int n_rows;
  };
  Memory memory_of(const RowBatch& batch, int64_t g) const;

  int64_t n_rows_ = 0, n_cols_ = 0;
  Scratch<int8_t> integers_;
  Scratch<float> floats_;
  int8_t* q_ = nullptr;
  float *d_ = nullptr, *y_ = nullptr, *sum16_ = nullptr, *sum32_ = nullptr;
};

}  // namespace sluice::backend::cpu
