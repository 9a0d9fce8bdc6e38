// See mirostat.h.
// SPDX-License-Identifier: Apache-2.0
#include "sampler/mirostat.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace sluice::sampler {
namespace {

// Version 1 takes the tokens for Zipf-distributed, p_i ~ i^-s, and fits s to the m best:
//
//   s = sum t_i b_i / sum t_i^2,  t_i = ln((i + 1) / i),  b_i = ln(p_i / p_(i+1)) = l_i - l_(i+1)
//   k = (e 2^mu / (1 - N^-e))^(1/s),  e = s - 1,  N = n_vocab
//
// so that the k best have a surprise of about mu. For e = 0 the fraction's limit is 2^mu / ln N.
size_t zipf_k(std::span<uint64_t> best, double mu, size_t n_vocab) {
  std::sort(best.begin(), best.end(), std::greater<>());
  double tb = 0.0;
  double tt = 0.0;
  for (size_t i = 1; i < best.size(); ++i) {
    const double t = std::log(static_cast<double>(i + 1) / static_cast<double>(i));
    tb += t * (static_cast<double>(value_of(best[i - 1])) - value_of(best[i]));
    tt += t * t;
  }
  const double s = tb / tt;
  const double e = s - 1.0;
  const double log_n = std::log(static_cast<double>(n_vocab));
  const double spread = e == 0.0 ? log_n : -std::expm1(-e * log_n) / e;
  const double k = std::pow(std::exp2(mu) / spread, 1.0 / s);
  // s = 0 makes k 0, infinite or NaN.
  return k >= 1.0 ? static_cast<size_t>(std::min(k, 1e9)) : 1;
}

}  // namespace

// Version 2 cuts at the surprise itself: -log2 p <= mu stays. The best token always does.
void Mirostat::truncate(Candidates& candidates, size_t n_vocab) const {
  constexpr size_t kFitted = 100;
  if (version_ == 1) {
    const auto best = candidates.rank_best(kFitted);
    if (best.size() > 1) candidates.keep_best(zipf_k(best, mu_, n_vocab));
    return;
  }
  const double least = std::exp2(-mu_) * candidates.weigh();
  const auto weights = candidates.weights();
  if (least > 1.0) return candidates.keep_best(1);  // the best weighs 1
  candidates.keep_if([&](size_t i) { return weights[i] >= least; });
}

// mu <- mu - eta (S - tau),  S = -log2 p
void Mirostat::observe(double p) { mu_ -= eta_ * (-std::log2(p) - tau_); }

}  // namespace sluice::sampler
