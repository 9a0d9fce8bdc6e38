// Ops::embed on the CPU: rows of the table as plain floats.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"
#include "base/check.h"
#include "quant/decode.h"

namespace sluice::backend::cpu {

void CpuOps::embed(const WeightView& table, const StepView& step, RowsView x) {
  auto decode = [&](int64_t begin, int64_t end, int) {
    for (int64_t r = begin; r < end; ++r) {
      const TokenId token = step.tokens[r];
      CHECK(token >= 0 && token < table.n_rows);
      quant::decode_row(table.type, table.row(token), {x.row(r), static_cast<size_t>(x.n_cols)});
    }
  };
  // Few rows are sooner decoded than other threads are awake.
  constexpr int64_t kFewRows = 16;
  if (*step.n_live <= kFewRows) return decode(0, *step.n_live, 0);
  pool_.parallel_for(*step.n_live, kFewRows, decode);
}

}  // namespace sluice::backend::cpu
