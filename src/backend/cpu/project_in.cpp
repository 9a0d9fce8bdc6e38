// Ops::project_in on the CPU: out[r] = the projections of norm(x[r]), side by side.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"

namespace sluice::backend::cpu {

void CpuOps::project_in(ConstRowsView x, const NormView& norm,
                        std::span<const Projection> projections, RowsView out) {
  matmul_.multiply(normalised(x, norm), projections, out);
}

}  // namespace sluice::backend::cpu
