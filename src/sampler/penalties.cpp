// See penalties.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/penalties.h"

#include "sampler/bounded.h"
#include "sampler/lanes.h"

namespace sluice::sampler {

// For a token that occurs n > 0 times in the window:
//
//   l <- l / repeat   where l > 0, else l * repeat
//   l <- l - (n * frequency + presence)
void penalise(Candidates& candidates, const TokenCounts& counts, const Penalties& by) {
  for (const auto& [id, n] : counts.entries()) {
    float* logit = candidates.find(id);
    if (logit == nullptr || *logit == -kInf) continue;
    const double l = *logit;
    const double scaled = l > 0.0 ? l / by.repeat : l * by.repeat;
    *logit = bounded(scaled - (static_cast<double>(n) * by.frequency + by.presence));
  }
}

}  // namespace sluice::sampler
