// Ops::pick on the CPU: one pass over a row's logits, with the best so far in a heap.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "backend/cpu/cpu_ops.h"

namespace sluice::backend {

void pick_best(std::span<const float> logits, int n_best, PickedRow& row) {
  const auto is_better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
  };
  row.is_finite = 1;
  row.n_best = 0;
  // The worst of those kept stands in front.
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) {
      row.is_finite = row.n_best = 0;
      return;
    }
    const Candidate candidate{static_cast<TokenId>(i), logits[i]};
    if (row.n_best < n_best) {
      row.best[row.n_best++] = candidate;
      std::push_heap(row.best, row.best + row.n_best, is_better);
    } else if (n_best > 0 && is_better(candidate, row.best[0])) {
      std::pop_heap(row.best, row.best + row.n_best, is_better);
      row.best[row.n_best - 1] = candidate;
      std::push_heap(row.best, row.best + row.n_best, is_better);
    }
  }
  std::sort_heap(row.best, row.best + row.n_best, is_better);
}

namespace cpu {

void CpuOps::pick(ConstRowsView logits, const StepView& step, int64_t first, PickedRow* picks) {
  const int64_t n = std::min(*step.n_logits - first, logits.n_rows);
  if (*step.n_best == 0) return;
  for (int64_t i = 0; i < n; ++i) {
    pick_best({logits.row(i), static_cast<size_t>(logits.n_cols)}, *step.n_best, picks[i]);
  }
}

}  // namespace cpu
}  // namespace sluice::backend
