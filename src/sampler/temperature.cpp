// See temperature.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/temperature.h"

#include <algorithm>
#include <cmath>

#include "sampler/lanes.h"
#include "sampler/parameters.h"
#include "sampler/truncation.h"

namespace sluice::sampler {

// l <- l / T
void temperature(Candidates& candidates, double temp) {
  const auto t = static_cast<float>(std::clamp<double>(temp, 0.0, kMostFloat));
  // Where the largest quotient leaves float's range, even neighbouring floats are so far apart
  // that the best token has all the probability.
  if (t <= 0.0f || std::abs(candidates.max() / t) > kMostFloat) return candidates.keep_best(1);
  for (float& logit : candidates.logits()) logit /= t;
}

// T <- T_min + (T_max - T_min) * (H / ln n)^exponent, with H = -sum_i p_i ln p_i the entropy of the
// n tokens that can be drawn, and ln n the most it could be.
void dynamic_temperature(Candidates& candidates, double temp, double range, double exponent) {
  if (range <= 0.0) return temperature(candidates, temp);
  const double n = sum_of(candidates.size(),
                          [&](size_t i) { return candidates.logits()[i] > -kInf ? 1.0f : 0.0f; });
  if (n <= 1.0) return;  // no temperature changes anything
  const double total = candidates.weigh();
  const double entropy = std::log(total) - mean_below_max(candidates, total);
  const double share = std::clamp(entropy / std::log(n), 0.0, 1.0);
  const double least = std::max(0.0, temp - range);
  const double most = temp + range;
  temperature(candidates, least + (most - least) * std::pow(share, exponent));
}

}  // namespace sluice::sampler
