// The gated delta rule of steps of few rows with a head on four SMs: part of delta_net.h, on cards
// whose blocks come in clusters. The bits are delta_net's.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/delta_net.h"
#include "backend/cuda/launch.h"

namespace sluice::backend::cuda {

bool can_part_delta(const DeltaNetStep& p, const Launch& how);
void part_delta_net(const DeltaNetStep& p, const Launch& how);

}  // namespace sluice::backend::cuda
