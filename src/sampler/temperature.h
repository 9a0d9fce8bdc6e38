// Temperature: how much the differences between logits count. And dynamic temperature, which is
// higher where the model is less sure.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sampler/candidates.h"

namespace sluice::sampler {

// 0 or less: only the best token stays.
void temperature(Candidates& candidates, double temp);

// From temp - range (not below 0) to temp + range; range >= 0, exponent >= 0.
void dynamic_temperature(Candidates& candidates, double temp, double range, double exponent);

}  // namespace sluice::sampler
