// How far one row of logits is from another.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>

namespace sluice::engine::test {

inline double log_sum(std::span<const float> row) {
  double sum = 0.0;
  for (const float v : row) sum += std::exp(double{v});
  return std::log(sum);
}

// sum p log(p / q)
inline double divergence(std::span<const float> p, std::span<const float> q) {
  const double lp = log_sum(p), lq = log_sum(q);
  double kl = 0.0;
  for (size_t i = 0; i < p.size(); ++i) kl += std::exp(p[i] - lp) * ((p[i] - lp) - (q[i] - lq));
  return kl;
}

}  // namespace sluice::engine::test
