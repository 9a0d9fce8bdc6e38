// Input rows as the kernels take them: int8 blocks of the numeric contract, part A, and the sums of
// the integers that kernels correct by.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/scratch.h"
#include "quant/activation.h"

namespace sluice::backend::cpu {

// The sums of rows that are quantised already.
class RowSums {
 public:
  void reserve(int64_t n_rows, int64_t n_cols);

  // Of n columns from `first` on, both multiples of 32.
  void set(int64_t r, int64_t first, int64_t n, const int8_t* q);

  const float* by_16(int64_t r) const { return by_16_ + r * n_cols_ / 16; }
  const float* by_32(int64_t r) const { return by_32_ + r * n_cols_ / 32; }

 private:
  int64_t n_cols_ = 0;
  Scratch<float> memory_;
  float* by_16_ = nullptr;
  float* by_32_ = nullptr;
};

class QuantizedRows {
 public:
  // Room for n_rows rows of n_cols values, n_cols a multiple of 32.
  void reserve(int64_t n_rows, int64_t n_cols);

  // Quantises n values into columns from `first` on, both multiples of 32. Different threads may
  // set different parts.
  void set(int64_t r, int64_t first, int64_t n, const float* x);

  QuantizedRow row(int64_t r) const {
    return {q_ + r * n_cols_, d_ + r * n_cols_ / 32, y_ + r * n_cols_ / 32, sums_.by_16(r),
            sums_.by_32(r)};
  }

 private:
  int64_t n_cols_ = 0;
  Scratch<int8_t> integers_;
  Scratch<float> scales_;
  RowSums sums_;
  int8_t* q_ = nullptr;
  float* d_ = nullptr;
  float* y_ = nullptr;
};

}  // namespace sluice::backend::cpu
