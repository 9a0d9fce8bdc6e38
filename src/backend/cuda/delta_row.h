// The gated delta rule of a step of a single row, what a decode step of one sequence waits for:
// part of delta_net.h, on cards whose blocks come in clusters. The bits are delta_net's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_net.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

bool can_row_delta(const DeltaNetStep& p, const Launch& how);
void row_delta_net(const DeltaNetStep& p, const Launch& how);

}  // namespace sluice::backend::cuda
