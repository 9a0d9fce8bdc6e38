// Attention of wide_attend.h by the tensor cores of four warps at once, which sm_90 alone has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/wide_attend.h"

namespace sluice::backend::cuda {

// Whether there are enough rows or positions, of heads of up to 128, and the card and the build
// have such instructions.
bool has_group_attend(const WideAttend& p, const Launch& how);

// Of heads that are made for it (by_groups) and keys that are appended (wide_heads.h).
void group_attend(const WideAttend& p, const Launch& how);

}  // namespace sluice::backend::cuda
