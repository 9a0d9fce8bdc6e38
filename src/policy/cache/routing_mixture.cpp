// See routing_mixture.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/cache/routing_mixture.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "base/check.h"

namespace sluice::policy {

namespace {

constexpr uint32_t kNeighbours = 16;
constexpr uint32_t kFollowers = 4;    // steps after a neighbour, each half as important
constexpr float kSeedSteps = 64.0f;   // a profile weighs as much as so many steps
constexpr float kNever = 1e9f;        // the age of what was not used yet
constexpr float kTiny = 1e-20f;       // counts stay above it: denormal numbers are slow
constexpr float kRenewEvery = 64.0f;  // steps, in which units grow by up to 256

// Which of 64 values are. In halves, since lanes of 32 bits are twice as many.
uint64_t at_most(float ceiling, const float* values) {
  std::array<uint32_t, 2> half = {};
  for (size_t h = 0; h < 2; ++h) {
    for (size_t i = 0; i < 32; ++i) {
      half[h] |= static_cast<uint32_t>(values[h * 32 + i] <= ceiling) << i;
    }
  }
  return half[0] | static_cast<uint64_t>(half[1]) << 32;
}

}  // namespace

RoutingMixture::RoutingMixture(size_t n_total, int horizon)
    : n_total_(n_total),
      n_padded_((n_total + 63) / 64 * 64),
      horizon_(static_cast<uint32_t>(horizon)),
      last_use_(n_padded_, -kNever),
      values_(n_padded_, 0.0f),
      n_row_words_((n_total + 63) / 64),
      rows_(kHistory * n_row_words_, 0),
      history_(n_total + 1),
      sample_(n_total + MemberCounts<kWords>::kBatch),
      follow_(horizon_) {
  CHECK(horizon >= 1 && horizon_ < kHistory);
  weight_.fill(1.0f / static_cast<float>(kPredictors));
  count_norm_.fill(kTiny);
  unit_.fill(1.0);
  for (std::vector<float>& count : count_) count.assign(n_padded_, kTiny);
}

void RoutingMixture::seed(std::span<const float> rates) {
  constexpr size_t kSlowest = kScales - 1;
  for (size_t i = 0; i < n_total_; ++i) count_[kSlowest][i] = rates[i] * kSeedSteps + kTiny;
  count_norm_[kSlowest] = kSeedSteps;
  set_value_weights();
  set_values();
}

size_t RoutingMixture::list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                                  std::span<double> values) const {
  const bool is_limited = ceiling < std::numeric_limits<double>::infinity();
  const Follow& follow = follow_[n_remembered_ % horizon_];
  size_t n = 0;
  for (size_t w = 0; w < set.size(); ++w) {
    uint64_t bits = set[w];
    if (bits == 0) continue;
    // The neighbours' part is never negative, so it is only computed for values below the ceiling.
    if (is_limited) bits &= at_most(static_cast<float>(ceiling), values_.data() + w * 64);
    for (; bits != 0; bits &= bits - 1) {
      const size_t i = w * 64 + static_cast<size_t>(std::countr_zero(bits));
      const double value =
          values_[i] + static_cast<double>(lean_[neighbours] * follow.probability(history_[i]));
      ids[n] = static_cast<int>(i);  // overwritten if not counted: no branch
      values[n] = value;
      n += value < ceiling;
    }
  }
  return n;
}

// The even guess is left out: it tells no two experts apart.
void RoutingMixture::set_value_weights() {
  float sum = 0.0f;
  for (size_t k = 0; k < uniform; ++k) sum += weight_[k];
  for (size_t k = 0; k < uniform; ++k) lean_[k] = weight_[k] / sum;
  for (size_t s = 0; s < kScales; ++s) {
    count_lean_[s] = static_cast<float>(lean_[count_8 + s] / (count_norm_[s] * unit_[s]));
  }
}

// Instead of all counts getting smaller, what a use adds gets larger.
void RoutingMixture::count(std::span<const Use> uses) {
  if (now_ == kRenewEvery) renew_units();
  now_ += 1.0f;
  for (size_t s = 0; s < kScales; ++s) {
    unit_[s] *= kGrowth[s];
    count_norm_[s] = static_cast<float>(count_norm_[s] / kGrowth[s] + 1.0);
    const auto unit = static_cast<float>(unit_[s]);
    for (const Use& use : uses) count_[s][static_cast<size_t>(use.id)] += use.share * unit;
  }
  n_used_ = 0.0f;
  for (const Use& use : uses) {
    last_use_[static_cast<size_t>(use.id)] = now_;
    n_used_ += use.share;
  }
  set_value_weights();
  set_values();
}

// Before numbers grow too large.
void RoutingMixture::renew_units() {
  for (size_t s = 0; s < kScales; ++s) {
    const auto scale = static_cast<float>(1.0 / unit_[s]);
    for (float& count : count_[s]) count = count * scale + kTiny;
  }
  unit_.fill(1.0);
  for (float& step : last_use_) step -= now_;
  now_ = 0.0f;
}

// One pass over all experts, made of vector instructions. The scale of recency is that of the step
// before, since it changes slowly and this pass only now adds it up.
void RoutingMixture::set_values() {
  static_assert(kScales == 3);
  constexpr size_t kLanes = 32;  // sums side by side: a single one could not be vectors
  const float* const __restrict a = count_[0].data();
  const float* const __restrict b = count_[1].data();
  const float* const __restrict c = count_[2].data();
  const float* const __restrict last_use = last_use_.data();
  float* const __restrict values = values_.data();
  const float w = lean_[recency] * recency_scale_;
  const float now = now_;
  const auto [wa, wb, wc] = count_lean_;
  std::array<float, kLanes> sums = {};
  for (size_t begin = 0; begin < n_padded_; begin += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const size_t i = begin + lane;
      const float fresh = recency_of(now - last_use[i]);
      values[i] = w * fresh + wa * a[i] + wb * b[i] + wc * c[i];
      sums[lane] += fresh;
    }
  }
  recency_scale_ = n_used_ / std::accumulate(sums.begin(), sums.end(), 0.0f);
}

// The oldest row makes room.
void RoutingMixture::remember(std::span<const Use> uses) {
  const size_t row = n_remembered_++ % kHistory;
  const size_t word = row / 64;
  const uint64_t bit = uint64_t{1} << (row % 64);
  remembered_[word] |= bit;
  uint64_t* const words = rows_.data() + row * n_row_words_;
  for (size_t w = 0; w < n_row_words_; ++w) {
    for (uint64_t bits = words[w]; bits != 0; bits &= bits - 1) {
      history_[w * 64 + static_cast<size_t>(std::countr_zero(bits))][word] &= ~bit;
    }
    words[w] = 0;
  }
  n_sample_ = 0;
  for (const Use& use : uses) {
    const auto i = static_cast<size_t>(use.id);
    words[i / 64] |= uint64_t{1} << (i % 64);
    history_[i][word] |= bit;
    sample_[n_sample_] = use.id;  // every other 64 experts; the rest is overwritten
    n_sample_ += (i / 64) % 2 == 0;
  }
  while (n_sample_ % MemberCounts<kWords>::kBatch != 0) {
    sample_[n_sample_++] = static_cast<int>(n_total_);  // never used
  }
}

// States are compared by half of the experts, which tell as much as all.
void RoutingMixture::find_neighbours() {
  const uint32_t newest = n_remembered_ - 1;
  const uint32_t n_found = std::min(newest, kHistory - 1);  // it is not its own neighbour
  const MemberCounts<kWords> overlaps(history_.data(), std::span(sample_).first(n_sample_));
  History equal = remembered_;
  flip_bit(equal, newest % kHistory);
  History higher = {};
  int n_equal = overlaps.split_at(static_cast<int>(std::min(kNeighbours, n_found)), equal, higher);
  std::array<float, kHistory> weights = {};
  for (uint32_t ago = 1; ago <= n_found; ++ago) {
    const size_t row = (newest - ago) % kHistory;
    if (!has(higher, row) && (!has(equal, row) || n_equal-- <= 0)) continue;  // the later ones win
    const auto overlap = static_cast<float>(overlaps.count(row));
    float weight = overlap * overlap;
    for (uint32_t j = 1; j <= std::min(kFollowers, ago); ++j, weight *= 0.5f) {
      weights[(newest - ago + j) % kHistory] += weight;
    }
  }
  set_follow_weights(weights);
}

void RoutingMixture::set_follow_weights(std::span<const float> weights) {
  const float most = std::max(kTiny, *std::max_element(weights.begin(), weights.end()));
  const float scale = static_cast<float>((1 << kPlanes) - 1) / most;
  Follow& follow = follow_[n_remembered_ % horizon_];
  follow = {};
  int sum = 0;
  for (size_t row = 0; row < weights.size(); ++row) {
    const int weight = static_cast<int>(weights[row] * scale + 0.5f);
    sum += weight;
    for (size_t plane = 0; plane < kPlanes; ++plane) {
      follow.plane[plane][row / 64] |= static_cast<uint64_t>((weight >> plane) & 1) << (row % 64);
    }
  }
  follow.scale = sum > 0 ? 1.0f / static_cast<float>(sum) : 0.0f;
}

void RoutingMixture::observe(std::span<const Use> uses, bool is_token) {
  if (n_steps_++ > 0 && is_token) learn_weights(uses);
  count(uses);
  n_in_row_ = is_token ? n_in_row_ + 1 : 0;
  if (!is_token) return;
  remember(uses);
  find_neighbours();
}

}  // namespace sluice::policy
