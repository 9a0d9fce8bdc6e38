// See matmul.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/matmul.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::backend::cpu {

void Matmul::set_inputs(ConstRowsView x, std::span<const Projection> projections) {
  inputs_.f32.clear();
  for (int64_t r = 0; r < x.n_rows; ++r) inputs_.f32.push_back(x.row(r));

  const bool quantize = std::ranges::any_of(
      projections, [](const Projection& p) { return !quant::is_float(p.weight.type); });
  if (!quantize) return;
  const RowBatch batch{0, x.n_rows};
  quantized_.reserve(batch.end(), x.n_cols);
  inputs_.set_q8(quantized_, batch);
  const int64_t at_a_time = x.n_rows < kInputsTogether ? 1 : kInputsTogether;  // no shared lines
  pool_.parallel_for(x.n_rows, at_a_time, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) quantized_.set(batch, r, 0, x.n_cols, x.row(r));
  });
}

// Small matrices, such as a router, in smaller pieces, so that no thread goes without.
int64_t Matmul::rows_at_a_time(std::span<const Projection> projections, int64_t n_inputs) const {
  int64_t n_rows = 0;
  for (const Projection& p : projections) n_rows += p.weight.n_rows;
  const int64_t least = n_inputs == 1 ? 8 : 16;
  int64_t step = rows_per_piece(n_inputs);
  while (step > least && n_rows < 2 * step * pool_.n_threads()) step /= 2;
  return step;
}

void Matmul::run(ConstRowsView x, std::span<const Projection> projections, RowsView out, bool add) {
  set_inputs(x, projections);
  const int64_t step = rows_at_a_time(projections, x.n_rows);
  pieces_.clear();
  int64_t column = 0;
  for (const Projection& p : projections) {
    p.weight.each_run([&](const RowRun& run) {
      for (int64_t i = 0; i < run.n_rows; i += step) {
        const int64_t first = run.first + i, n = std::min(step, run.n_rows - i);
        pieces_.push_back({&p, first, n, column + first, run.at + i});
      }
    });
    column += p.weight.n_rows;
  }
  CHECK(out.n_rows == x.n_rows && column <= out.n_cols);

  pool_.parallel_for(std::ssize(pieces_), 1, [&](int64_t begin, int64_t end, int thread) {
    Scratch<float>& scratch = threads_[static_cast<size_t>(thread)];
    for (int64_t i = begin; i < end; ++i) {
      const auto& [projection, first, n, at, stands] = pieces_[static_cast<size_t>(i)];
      float* const dots = scratch.get(x.n_rows * n);
      cpu::multiply(kernels_, projection->weight, stands, n, inputs_, dots);
      for (int64_t r = 0; r < x.n_rows; ++r) {
        float* const target = out.row(r) + at;
        for (int64_t k = 0; k < n; ++k) {
          const float value =
              dots[r * n + k] + (projection->bias ? projection->bias[first + k] : 0.0f);
          target[k] = add ? target[k] + value : value;
        }
      }
    }
  });
}

void Matmul::multiply(ConstRowsView x, std::span<const Projection> projections, RowsView out) {
  run(x, projections, out, /*add=*/false);
}

void Matmul::multiply_add(ConstRowsView x, const Projection& projection, RowsView out) {
  run(x, {&projection, 1}, out, /*add=*/true);
}

}  // namespace sluice::backend::cpu
