// The simplest sampler: the most probable token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "base/ids.h"

namespace sluice::sampler {

// Ties go to the lower id; logits must not be empty.
TokenId greedy(std::span<const float> logits);

}  // namespace sluice::sampler
