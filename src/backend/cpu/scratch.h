// Memory of the CPU operations that grows to the largest step it has seen and then stays: after a
// first step of full width nothing is allocated any more.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "backend/views.h"
#include "quant/activation.h"

namespace sluice::backend::cpu {

template <typename T>
class Scratch {
 public:
  // At least n values, whose content is left over from earlier use.
  T* get(int64_t n) {
    if (static_cast<int64_t>(values_.size()) < n) values_.resize(static_cast<size_t>(n));
    return values_.data();
  }

 private:
  std::vector<T> values_;
};

// Rows in the int8 form of the numeric contract, part A.
class QuantizedRows {
 public:
  void reserve(int64_t n_rows, int64_t n_cols) {
    n_cols_ = n_cols;
    q_.get(n_rows * n_cols);
    d_.get(n_rows * n_cols / 32);
    y_.get(n_rows * n_cols / 32);
  }

  // Quantises one row; different rows may be set from different threads.
  void set(int64_t r, const float* x) {
    quant::quantize_activation({x, static_cast<size_t>(n_cols_)}, q_.get(0) + r * n_cols_,
                               d_.get(0) + r * n_cols_ / 32, y_.get(0) + r * n_cols_ / 32);
  }

  quant::ActivationView row(int64_t r) {
    return {q_.get(0) + r * n_cols_, d_.get(0) + r * n_cols_ / 32, y_.get(0) + r * n_cols_ / 32};
  }

 private:
  int64_t n_cols_ = 0;
  Scratch<int8_t> q_;
  Scratch<float> d_;
  Scratch<float> y_;
};

}  // namespace sluice::backend::cpu
