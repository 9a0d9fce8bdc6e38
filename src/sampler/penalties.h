// Repetition, frequency and presence penalties: tokens that occurred lately become less likely.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sampler/candidates.h"
#include "sampler/history.h"

namespace sluice::sampler {

struct Penalties {
  float repeat = 1.0f;  // above 0
  float frequency = 0.0f;
  float presence = 0.0f;

  bool are_off() const { return repeat == 1.0f && frequency == 0.0f && presence == 0.0f; }
};

void penalise(Candidates& candidates, const TokenCounts& counts, const Penalties& by);

}  // namespace sluice::sampler
