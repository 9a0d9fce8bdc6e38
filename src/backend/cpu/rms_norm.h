// y = x * w / sqrt(mean(x^2) + eps), one row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "backend/views.h"

namespace sluice::backend::cpu {

// y may be x.
void rms_norm(std::span<const float> x, const NormView& norm, float* y);

}  // namespace sluice::backend::cpu
