// XTC ("exclude top choices"): now and then drops all likely tokens but the least likely of them,
// so that the text becomes less predictable. The sampler draws whether it applies to this token.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sampler/candidates.h"

namespace sluice::sampler {

void xtc(Candidates& candidates, float threshold, size_t min_keep);

}  // namespace sluice::sampler
