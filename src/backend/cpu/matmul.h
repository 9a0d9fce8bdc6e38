// Matrix products of the trunk: many rows of f32 in, one or more projections out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/row_dots.h"
#include "backend/cpu/scratch.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

// Per thread: results of one weight row, and that row widened.
struct MatmulThread {
  std::vector<float> dots;
  std::vector<float> unpacked;
};

class Matmul {
 public:
  explicit Matmul(ThreadPool& pool)
      : pool_(pool), threads_(static_cast<size_t>(pool.n_threads())) {}

  // Takes the input of the next products; quantises it if one of the projections wants that. The
  // rows must stay where they are until then.
  void set_input(ConstRowsView x, std::span<const Projection> projections);

  // out[r][column + n] = W[n] . x[r] + bias[n], or += where `add`.
  void multiply(const Projection& projection, RowsView out, int64_t column, bool add);

 private:
  ThreadPool& pool_;
  std::vector<MatmulThread> threads_;
  InputRows inputs_;
  QuantizedRows quantized_;
  int64_t n_rows_ = 0;
};

}  // namespace sluice::backend::cpu
