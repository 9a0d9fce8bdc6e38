// See routing_mixture.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/routing_mixture.h"

#include <algorithm>
#include <bit>

namespace sluice::policy {

namespace {

constexpr uint32_t kNeighbours = 16;
constexpr uint32_t kFollowers = 4;  // steps after a neighbour, each half as important
constexpr float kLearningRate = 0.125f;
constexpr float kLeastWeight = 1e-3f;  // no predictor is lost for good
constexpr size_t kLearnEvery = 4;      // one use in four teaches the weights
constexpr float kSeedSteps = 64.0f;    // a profile weighs as much as so many steps
constexpr float kNever = 1e9f;         // the age of what was not used yet
constexpr float kTiny = 1e-30f;        // counts stay above it: denormal numbers are slow

// 2^(-1/8), 2^(-1/64), 2^(-1/512).
constexpr std::array<float, 3> kDecay = {0.917004043f, 0.989228013f, 0.998647113f};

float recency_of(float age) { return 0.5f / (1.0f + age); }

}  // namespace

RoutingMixture::RoutingMixture(size_t n_total)
    : Replacement(n_total),
      n_total_(n_total),
      age_(n_total, kNever),
      n_row_words_((n_total + 63) / 64),
      n_sample_words_((n_row_words_ + 1) / 2),
      rows_(kHistory * n_row_words_, 0),
      sample_(kHistory * n_sample_words_, 0),
      history_(n_total) {
  weight_.fill(1.0f / static_cast<float>(kPredictors));
  count_norm_.fill(kTiny);
  for (std::vector<float>& count : count_) count.assign(n_total, kTiny);
}

void RoutingMixture::seed(std::span<const float> rates) {
  constexpr size_t kSlowest = kScales - 1;
  for (size_t i = 0; i < n_total_; ++i) count_[kSlowest][i] = rates[i] * kSeedSteps + kTiny;
  count_norm_[kSlowest] = kSeedSteps;
  set_value_weights();
  for (size_t i = 0; i < n_total_; ++i) values_[i] = value_at(i);
}

float RoutingMixture::follows(size_t id) const {
  const History& history = history_[id];
  int sum = 0;
  for (size_t plane = 0; plane < kPlanes; ++plane) {
    int n = 0;
    for (size_t w = 0; w < kWords; ++w) n += std::popcount(history[w] & follow_plane_[plane][w]);
    sum += n << plane;
  }
  return static_cast<float>(sum) * follow_scale_;
}

void RoutingMixture::values(std::span<const int> ids, std::span<double> out) const {
  for (size_t k = 0; k < ids.size(); ++k) {
    const auto i = static_cast<size_t>(ids[k]);
    out[k] = values_[i] + static_cast<double>(lean_[neighbours] * follows(i));
  }
}

// One step of expectation maximisation: a predictor's weight moves towards its share of the
// probability that the mixture gave to what was then used.
void RoutingMixture::learn_weights(std::span<const Use> uses) {
  Probabilities share = {};
  float n = 0.0f;
  const float even = static_cast<float>(uses.size()) / static_cast<float>(n_total_);
  for (size_t u = n_steps_ % kLearnEvery; u < uses.size(); u += kLearnEvery) {
    const auto i = static_cast<size_t>(uses[u].id);
    Probabilities p = {recency_of(age_[i]), 0.0f, 0.0f, 0.0f, follows(i), even};
    for (size_t s = 0; s < kScales; ++s) p[count_8 + s] = count_[s][i] / count_norm_[s];
    float sum = 0.0f;
    for (size_t k = 0; k < kPredictors; ++k) sum += p[k] *= weight_[k];
    const float scale = 1.0f / sum;
    for (size_t k = 0; k < kPredictors; ++k) share[k] += p[k] * scale;
    n += 1.0f;
  }
  if (n == 0.0f) return;
  for (size_t k = 0; k < kPredictors; ++k) {
    weight_[k] = std::max(kLeastWeight, weight_[k] + kLearningRate * (share[k] / n - weight_[k]));
  }
}

// Values lean on the better predictors: by the squares of the weights, the even guess left out.
void RoutingMixture::set_value_weights() {
  float sum = 0.0f;
  for (size_t k = 0; k < uniform; ++k) sum += weight_[k] * weight_[k];
  for (size_t k = 0; k < uniform; ++k) lean_[k] = weight_[k] * weight_[k] / sum;
  for (size_t s = 0; s < kScales; ++s) count_lean_[s] = lean_[count_8 + s] / count_norm_[s];
}

float RoutingMixture::value_at(size_t id) const {
  float sum = lean_[recency] * recency_of(age_[id]);
  for (size_t s = 0; s < kScales; ++s) sum += count_lean_[s] * count_[s][id];
  return sum;
}

// All experts age by a step in one pass; then those that were used.
void RoutingMixture::count(std::span<const Use> uses) {
  for (size_t s = 0; s < kScales; ++s) count_norm_[s] = count_norm_[s] * kDecay[s] + 1.0f;
  set_value_weights();
  static_assert(kScales == 3);
  float* const __restrict a = count_[0].data();
  float* const __restrict b = count_[1].data();
  float* const __restrict c = count_[2].data();
  float* const __restrict age = age_.data();
  double* const __restrict values = values_.data();
  const float w = lean_[recency];
  const auto [wa, wb, wc] = count_lean_;
  for (size_t i = 0; i < n_total_; ++i) {
    a[i] = a[i] * kDecay[0] + kTiny;
    b[i] = b[i] * kDecay[1] + kTiny;
    c[i] = c[i] * kDecay[2] + kTiny;
    age[i] += 1.0f;
    values[i] = w * recency_of(age[i]) + wa * a[i] + wb * b[i] + wc * c[i];
  }
  for (const Use& use : uses) {
    const auto i = static_cast<size_t>(use.id);
    for (size_t s = 0; s < kScales; ++s) count_[s][i] += use.share;
    age_[i] = 0.0f;
    values_[i] = value_at(i);
  }
}

// The oldest row makes room.
void RoutingMixture::remember(std::span<const Use> uses) {
  const size_t row = n_remembered_++ % kHistory;
  const size_t word = row / 64;
  const uint64_t bit = uint64_t{1} << (row % 64);
  uint64_t* const words = rows_.data() + row * n_row_words_;
  for (size_t w = 0; w < n_row_words_; ++w) {
    for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      history_[w * 64 + static_cast<size_t>(std::countr_zero(bits))][word] &= ~bit;
    }
    words[w] = 0;
  }
  for (const Use& use : uses) {
    const auto i = static_cast<size_t>(use.id);
    words[i / 64] |= uint64_t{1} << (i % 64);
    history_[i][word] |= bit;
  }
  for (size_t w = 0; w < n_sample_words_; ++w) sample_[row * n_sample_words_ + w] = words[2 * w];
}

// States are compared by half of the experts, which tell as much as all.
void RoutingMixture::find_neighbours() {
  struct Neighbour {
    int overlap;
    uint32_t ago;
  };
  std::array<Neighbour, kHistory> found;
  const uint32_t newest = n_remembered_ - 1;
  const uint32_t n_found = std::min(newest, kHistory - 1);  // it is not its own neighbour
  const uint64_t* const now = sample_.data() + newest % kHistory * n_sample_words_;
  for (uint32_t ago = 1; ago <= n_found; ++ago) {
    const uint64_t* const then = sample_.data() + (newest - ago) % kHistory * n_sample_words_;
    int overlap = 0;
    for (size_t w = 0; w < n_sample_words_; ++w) overlap += std::popcount(now[w] & then[w]);
    found[ago - 1] = {overlap, ago};
  }
  const uint32_t n = std::min(kNeighbours, n_found);
  std::nth_element(found.begin(), found.begin() + n, found.begin() + n_found,
                   [](const Neighbour& a, const Neighbour& b) {
                     return a.overlap != b.overlap ? a.overlap > b.overlap : a.ago < b.ago;
                   });
  std::array<float, kHistory> weights = {};
  for (uint32_t i = 0; i < n; ++i) {
    const auto [overlap, ago] = found[i];
    float weight = static_cast<float>(overlap) * static_cast<float>(overlap);
    for (uint32_t j = 1; j <= std::min(kFollowers, ago); ++j, weight *= 0.5f) {
      weights[(newest - ago + j) % kHistory] += weight;
    }
  }
  set_follow_weights(weights);
}

void RoutingMixture::set_follow_weights(std::span<const float> weights) {
  const float most = std::max(kTiny, *std::max_element(weights.begin(), weights.end()));
  const float scale = static_cast<float>((1 << kPlanes) - 1) / most;
  follow_plane_ = {};
  int sum = 0;
  for (size_t row = 0; row < weights.size(); ++row) {
    const int weight = static_cast<int>(weights[row] * scale + 0.5f);
    sum += weight;
    for (size_t plane = 0; plane < kPlanes; ++plane) {
      follow_plane_[plane][row / 64] |= static_cast<uint64_t>((weight >> plane) & 1) << (row % 64);
    }
  }
  follow_scale_ = sum > 0 ? 1.0f / static_cast<float>(sum) : 0.0f;
}

void RoutingMixture::observe(std::span<const Use> uses, bool is_token) {
  if (n_steps_++ > 0 && is_token) learn_weights(uses);
  count(uses);
  if (!is_token) return;
  remember(uses);
  find_neighbours();
}

}  // namespace sluice::policy
