// Ops::embed on the CPU: rows of the table as plain floats.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"
#include "base/check.h"
#include "quant/decode.h"

namespace sluice::backend::cpu {

void CpuOps::embed(const WeightView& table, const StepView& step, RowsView x) {
  for (int64_t r = 0; r < *step.n_live; ++r) {
    const TokenId token = step.tokens[r];
    CHECK(token >= 0 && token < table.n_rows);
    quant::decode_row(table.type, table.row(token), {x.row(r), static_cast<size_t>(x.n_cols)});
  }
}

}  // namespace sluice::backend::cpu
