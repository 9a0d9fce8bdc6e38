// The experts' kernels for a single row (gate_up and down decide when).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

void gate_up_row(const GateUp& p, const Launch& how);
void down_row(const Down& p, const Launch& how);

}  // namespace sluice::backend::cuda
