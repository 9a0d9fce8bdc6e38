// The first half of wide_attend(): heads, and what is appended to the KV cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/launch.h"
#include "backend/cuda/wide_attend.h"

namespace sluice::backend::cuda {

void wide_heads(const WideAttend& p, const Launch& how);

}  // namespace sluice::backend::cuda
