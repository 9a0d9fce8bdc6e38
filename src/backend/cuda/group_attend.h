// Attention of wide_attend.h by the tensor cores of four warps at once, which sm_90 alone has.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/wide_attend.h"

namespace sluice::backend::cuda {

// Of heads that are made and keys that are appended (wide_heads.h), of head_dim <= 128. False,
// and nothing done, where the card or the build has no such instructions.
bool group_attend(const WideAttend& p, const Launch& how);

}  // namespace sluice::backend::cuda
