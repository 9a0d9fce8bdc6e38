// Ops::project_add on the CPU: x[r] += W in[r] + bias.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cpu/cpu_ops.h"

namespace sluice::backend::cpu {

void CpuOps::project_add(ConstRowsView in, const Projection& projection, RowsView x) {
  matmul_.multiply_add(in, projection, x);
}

}  // namespace sluice::backend::cpu
