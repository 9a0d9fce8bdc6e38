// scores <- exp(scores - max) / sum, in place, with the contract's exp so that it is the same on
// every machine. The sum is one chain in order; the loops beside it are apart from it so that they
// become vector code.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <span>

#include "quant/swiglu.h"

namespace sluice::backend::cpu {

inline void softmax(std::span<float> scores) {
  const float peak = *std::ranges::max_element(scores);
  for (float& s : scores) s = quant::contract_exp(s - peak);
  const float sum = std::accumulate(scores.begin(), scores.end(), 0.0f);
  for (float& s : scores) s /= sum;
}

}  // namespace sluice::backend::cpu
