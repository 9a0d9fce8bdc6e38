// Ops::logits on the CPU: logits[i] = W norm(x[rows[i]]).
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/rms_norm.h"

namespace sluice::backend::cpu {

void CpuOps::logits(ConstRowsView x, std::span<const int32_t> rows, const NormView& norm,
                    const WeightView& output, RowsView logits) {
  const auto n = static_cast<int64_t>(rows.size());
  float* normed = normed_.get(n * x.n_cols);
  for (int64_t i = 0; i < n; ++i) {
    rms_norm({x.row(rows[static_cast<size_t>(i)]), static_cast<size_t>(x.n_cols)}, norm,
             normed + i * x.n_cols);
  }
  const Projection projection{output, nullptr};
  matmul_.multiply({normed, n, x.n_cols}, {&projection, 1}, logits);
}

}  // namespace sluice::backend::cpu
