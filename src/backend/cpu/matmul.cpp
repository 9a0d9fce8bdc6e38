// See matmul.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/matmul.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::backend::cpu {

void Matmul::set_input(ConstRowsView x, std::span<const Projection> projections) {
  n_rows_ = x.n_rows;
  inputs_.f32.resize(static_cast<size_t>(n_rows_));
  for (int64_t r = 0; r < n_rows_; ++r) inputs_.f32[static_cast<size_t>(r)] = x.row(r);

  const bool quantize = std::ranges::any_of(
      projections, [](const Projection& p) { return !quant::is_float(p.weight.type); });
  if (!quantize) return;
  quantized_.reserve(n_rows_, x.n_cols);
  inputs_.q8.resize(static_cast<size_t>(n_rows_));
  pool_.parallel_for(n_rows_, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      quantized_.set(r, x.row(r));
      inputs_.q8[static_cast<size_t>(r)] = quantized_.row(r);
    }
  });
}

void Matmul::multiply(const Projection& projection, RowsView out, int64_t column, bool add) {
  const WeightView& w = projection.weight;
  CHECK(out.n_rows == n_rows_ && column + w.n_rows <= out.n_cols);
  constexpr int64_t kGrain = 32;  // weight rows a thread takes at a time
  pool_.parallel_for(w.n_rows, kGrain, [&](int64_t begin, int64_t end, int thread) {
    MatmulThread& local = threads_[static_cast<size_t>(thread)];
    local.dots.resize(static_cast<size_t>(n_rows_));
    for (int64_t n = begin; n < end; ++n) {
      row_dots(w, n, inputs_, n_rows_, local.unpacked, local.dots.data());
      const float bias = projection.bias ? projection.bias[n] : 0.0f;
      for (int64_t r = 0; r < n_rows_; ++r) {
        float& target = out.row(r)[column + n];
        const float value = local.dots[static_cast<size_t>(r)] + bias;
        target = add ? target + value : value;
      }
    }
  });
}

}  // namespace sluice::backend::cpu
