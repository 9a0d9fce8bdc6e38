// scores <- exp(scores - max) / sum, in place, with the contract's exp so that it is the same on
// every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <span>

#include "quant/swiglu.h"

namespace sluice::backend::cpu {

inline void softmax(std::span<float> scores) {
  const float peak = *std::ranges::max_element(scores);
  float sum = 0.0f;
  for (float& s : scores) {
    s = quant::contract_exp(s - peak);
    sum += s;
  }
  for (float& s : scores) s /= sum;
}

}  // namespace sluice::backend::cpu
