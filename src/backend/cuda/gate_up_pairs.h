// gate_up of several rows for types of which a warp takes stripes of gate and up together.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

// False, and nothing is launched, where the type is not one of these, or a block has not the shared
// memory for it.
bool gate_up_pairs(const GateUp& p, const Launch& how);

}  // namespace sluice::backend::cuda
