// See greedy.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/greedy.h"

#include <algorithm>

#include "base/check.h"

namespace sluice::sampler {

TokenId greedy(std::span<const float> logits) {
  CHECK(!logits.empty());
  return static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin());
}

}  // namespace sluice::sampler
