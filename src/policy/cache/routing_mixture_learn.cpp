// How the default policy learns the weights of its predictors; see routing_mixture.h.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "policy/cache/routing_mixture.h"

namespace sluice::policy {

namespace {

constexpr float kLeastWeight = 1e-3f;  // no predictor is lost for good
constexpr size_t kLearnEvery = 4;      // one use in four teaches the weights
constexpr uint32_t kStride = 5;        // through the lags, so that neighbours in time differ

}  // namespace

// The state of `back` steps ago is not kept: it is computed back from the present one.
RoutingMixture::Past::Past(const RoutingMixture& mixture, uint32_t back)
    : mixture_(mixture),
      back_(back),
      newest_(mixture.n_remembered_ - back - 1),
      follow_(mixture.follow_[(mixture.n_remembered_ - back) % mixture.horizon_]) {
  visible_.fill(~uint64_t{0});
  for (uint32_t j = 1; j <= back; ++j) flip_bit(visible_, (newest_ + j) % kHistory);
  for (size_t s = 0; s < kScales; ++s) {
    double norm = mixture.count_norm_[s];
    double unit = mixture.unit_[s];
    for (uint32_t j = back; j >= 1; --j) {
      unit_[s][j] = static_cast<float>(unit);
      unit /= kGrowth[s];
      norm = (norm - 1.0) * kGrowth[s];
    }
    per_count_[s] = static_cast<float>(1.0 / (std::max(norm, 0.5) * unit));
  }
}

// Of each predictor but the even guess.
RoutingMixture::Probabilities RoutingMixture::Past::predict(size_t id) const {
  const RoutingMixture& m = mixture_;
  std::array<float, kScales> count = {m.count_[0][id], m.count_[1][id], m.count_[2][id]};
  float age = m.now_ - m.last_use_[id];
  History history = m.history_[id];
  if (back_ > 0) {
    for (size_t w = 0; w < kWords; ++w) history[w] &= visible_[w];
    for (uint32_t j = 1; j <= back_; ++j) {
      const bool used = has(m.history_[id], (newest_ + j) % kHistory);
      for (size_t s = 0; s < kScales; ++s) count[s] -= used ? unit_[s][j] : 0.0f;
    }
    const auto back = static_cast<float>(back_);
    age = age >= back ? age - back : static_cast<float>(members_back(history, newest_ % kHistory));
  }
  Probabilities p = {m.recency_scale_ * recency_of(age), 0.0f, 0.0f, 0.0f,
                     follow_.probability(history),       0.0f};
  for (size_t s = 0; s < kScales; ++s) p[count_8 + s] = std::max(0.0f, count[s]) * per_count_[s];
  return p;
}

// One step of expectation maximisation: a predictor's weight becomes its share of the probability
// that the mixture gave to what was then used. Being slower (a part of the way) is worse: a change
// of topic is over before the weights are right.
void RoutingMixture::learn_weights(std::span<const Use> uses) {
  const auto lag = static_cast<uint32_t>(n_steps_ * kStride % horizon_);  // beyond one step
  const Past past(*this, std::min(lag, n_in_row_ > 0 ? n_in_row_ - 1 : 0));
  Probabilities share = {};
  float n = 0.0f;
  const float even = static_cast<float>(uses.size()) / static_cast<float>(n_total_);
  for (size_t u = n_steps_ % kLearnEvery; u < uses.size(); u += kLearnEvery) {
    Probabilities p = past.predict(static_cast<size_t>(uses[u].id));
    p[uniform] = even;
    float sum = 0.0f;
    for (size_t k = 0; k < kPredictors; ++k) sum += p[k] *= weight_[k];
    const float scale = 1.0f / sum;
    for (size_t k = 0; k < kPredictors; ++k) share[k] += p[k] * scale;
    n += 1.0f;
  }
  if (n == 0.0f) return;
  for (size_t k = 0; k < kPredictors; ++k) {
    weight_[k] = std::max(kLeastWeight, share[k] / n);
  }
}

}  // namespace sluice::policy
