// See xtc.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/xtc.h"

#include "sampler/lanes.h"

namespace sluice::sampler {

// Of the tokens with softmax(l) >= threshold only the last in rank stays; of equal ones that is the
// one with the highest id. Nothing happens where there are fewer than two, or where fewer than
// min_keep tokens would be left.
void xtc(Candidates& candidates, float threshold, size_t min_keep) {
  const double total = candidates.weigh();
  const double bar = threshold * total;
  const auto weights = candidates.weights();
  const auto logits = candidates.logits();
  size_t n = 0;
  size_t last = 0;
  for (size_t i = 0; i < candidates.size(); ++i) {
    if (logits[i] == -kInf || weights[i] < bar) continue;
    if (n++ == 0 || logits[i] <= logits[last]) last = i;
  }
  if (n < 2 || candidates.size() - (n - 1) < min_keep) return;
  candidates.keep_if([&](size_t i) { return i == last || weights[i] < bar; });
}

}  // namespace sluice::sampler
