// down of several rows for types of which a warp takes two stripes of an expert.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/experts.h"

namespace sluice::backend::cuda {

struct Launch;

// False, and nothing is launched, where type, shape or card are not made for it.
bool down_pairs(const Down& p, const Launch& how);

}  // namespace sluice::backend::cuda
