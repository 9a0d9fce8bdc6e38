// Ops::logits on the CPU: logits[i] = W norm(x[logit_rows[first + i]]).
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "backend/cpu/cpu_ops.h"
#include "backend/cpu/rms_norm.h"

namespace sluice::backend::cpu {

void CpuOps::logits(ConstRowsView x, const StepView& step, int64_t first, const NormView& norm,
                    const WeightView& output, RowsView logits) {
  const int64_t n = std::min(*step.n_logits - first, logits.n_rows);
  if (n <= 0) return;
  logits.n_rows = n;
  float* normed = normed_.get(n * x.n_cols);
  for (int64_t i = 0; i < n; ++i) {
    rms_norm({x.row(step.logit_rows[first + i]), static_cast<size_t>(x.n_cols)}, norm,
             normed + i * x.n_cols);
  }
  const Projection projection{output, nullptr};
  matmul_.multiply({normed, n, x.n_cols}, {&projection, 1}, logits);
}

}  // namespace sluice::backend::cpu
