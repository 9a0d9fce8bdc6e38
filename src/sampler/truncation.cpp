// See truncation.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/truncation.h"

#include <algorithm>
#include <cmath>

#include "sampler/bounded.h"
#include "sampler/lanes.h"

namespace sluice::sampler {

// The k tokens of the largest logits; k <= 0: all.
void top_k(Candidates& candidates, int k) {
  if (k > 0) candidates.keep_best(static_cast<size_t>(k));
}

// The fewest best tokens whose probabilities reach p together:
//
//   sum over them of softmax(l) >= p
//
// Tokens below the share (1 - p) / n cannot be among them: all of these together weigh less than
// 1 - p, so the others reach p. That leaves few to rank.
void top_p(Candidates& candidates, float p, size_t min_keep) {
  if (p >= 1.0f) return;
  const double total = candidates.weigh();
  const double target = p * total;
  const double least =
      min_keep > 1 ? 0.0 : (total - target) / static_cast<double>(candidates.size());
  const auto weights = candidates.weights();
  const auto logits = candidates.logits();
  const auto keys = candidates.rank([&](size_t i) { return weights[i] >= least; },
                                    [&](size_t i) { return logits[i]; });
  candidates.keep(select_weight(keys, weights, target, min_keep));
}

// Tokens at least p times as likely as the likeliest:
//
//   l >= l_max + ln p
void min_p(Candidates& candidates, float p, size_t min_keep) {
  if (p <= 0.0f) return;
  candidates.keep_at_least(candidates.max() + std::log(static_cast<double>(p)), min_keep);
}

double mean_below_max(const Candidates& candidates, double total) {
  const float most = candidates.max();
  const auto weights = candidates.weights();
  const auto logits = candidates.logits();
  const double sum = sum_of(candidates.size(), [&](size_t i) {
    const float logit = weights[i] > 0.0f ? logits[i] : most;  // not -inf: 0 times that is NaN
    return weights[i] * (static_cast<double>(logit) - most);
  });
  return sum / total;
}

// The tokens whose surprise is nearest to the entropy H, fewest that reach p together:
//
//   rank by |-ln p_i - H|,  where  H = -sum_j p_j ln p_j
//
// With -ln p_i = ln Z - l_i this is |l_i - sum_j p_j l_j|: no logarithm is left.
void typical_p(Candidates& candidates, float p, size_t min_keep) {
  if (p >= 1.0f) return;
  const double total = candidates.weigh();
  const double mean = candidates.max() + mean_below_max(candidates, total);
  const auto logits = candidates.logits();
  const auto keys = candidates.rank([](size_t) { return true; },
                                    [&](size_t i) { return bounded(-std::abs(logits[i] - mean)); });
  candidates.keep(select_weight(keys, candidates.weights(), p * total, min_keep));
}

// Tokens within n standard deviations of the largest logit:
//
//   l >= l_max - n * sigma,  where  sigma^2 = mean (l - mean l)^2
//
// over all candidates that can be drawn.
void top_n_sigma(Candidates& candidates, float n, size_t min_keep) {
  if (n <= 0.0f) return;
  const auto l = candidates.logits();
  const auto average = [&](auto term) {
    const double count = sum_of(l.size(), [&](size_t i) { return l[i] > -kInf ? 1.0f : 0.0f; });
    return sum_of(l.size(), term) / count;
  };
  const double mean = average([&](size_t i) { return l[i] > -kInf ? l[i] : 0.0f; });
  const double variance = average([&](size_t i) {
    const double d = (l[i] > -kInf ? l[i] : mean) - mean;
    return d * d;
  });
  candidates.keep_at_least(candidates.max() - n * std::sqrt(variance), min_keep);
}

}  // namespace sluice::sampler
