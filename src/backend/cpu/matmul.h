// Matrix products of the trunk: many rows of f32 in, one or more projections out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "backend/cpu/products.h"
#include "backend/views.h"
#include "base/thread_pool.h"

namespace sluice::backend::cpu {

class Matmul {
 public:
  Matmul(ThreadPool& pool, const Kernels& kernels)
      : pool_(pool), kernels_(kernels), threads_(static_cast<size_t>(pool.n_threads())) {}

  // out[r] = the projections of x[r], side by side.
  void multiply(ConstRowsView x, std::span<const Projection> projections, RowsView out);

  // out[r] += the projection of x[r].
  void multiply_add(ConstRowsView x, const Projection& projection, RowsView out);

 private:
  struct Piece {  // some rows of one projection, and the column of `out` that the first one gives
    const Projection* projection;
    int64_t first, n_rows, column;
    int64_t stands;  // the row in memory that is the first one
  };

  void run(ConstRowsView x, std::span<const Projection> projections, RowsView out, bool add);
  int64_t rows_at_a_time(std::span<const Projection> projections, int64_t n_inputs) const;
  void set_inputs(ConstRowsView x, std::span<const Projection> projections);

  ThreadPool& pool_;
  const Kernels& kernels_;
  std::vector<Scratch<float>> threads_;  // the products of one piece of work
  std::vector<Piece> pieces_;
  InputRows inputs_;
  QuantizedRows quantized_;
};

}  // namespace sluice::backend::cpu
