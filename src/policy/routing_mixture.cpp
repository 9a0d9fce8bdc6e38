// See routing_mixture.h.
// SPDX-License-Identifier: Apache-2.0
#include "policy/routing_mixture.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace sluice::policy {

namespace {

constexpr uint32_t kNeighbours = 16;
constexpr uint32_t kFollowers = 4;  // steps after a neighbour, each half as important
constexpr float kLearningRate = 0.125f;
constexpr float kLeastWeight = 1e-3f;  // no predictor is lost for good
constexpr size_t kLearnEvery = 4;      // one use in four teaches the weights
constexpr float kSeedSteps = 64.0f;    // a profile weighs as much as so many steps
constexpr float kNever = 1e9f;         // the age of what was not used yet
constexpr float kTiny = 1e-20f;        // counts stay above it: denormal numbers are slow
constexpr float kRenewEvery = 64.0f;   // steps, in which units grow by up to 256

// 2^(1/8), 2^(1/64), 2^(1/512).
constexpr std::array<double, 3> kGrowth = {1.0905077326652577, 1.0108892860517005,
                                           1.0013547198921082};

float recency_of(float age) { return 0.5f / (1.0f + age); }

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

template <size_t kWords>
using Bits = std::array<uint64_t, kWords>;

template <size_t kWords>
bool has(const Bits<kWords>& bits, size_t i) {
  return ((bits[i / 64] >> (i % 64)) & 1) != 0;
}

template <size_t kWords>
void flip_bit(Bits<kWords>& bits, size_t i) {
  bits[i / 64] ^= uint64_t{1} << (i % 64);
}

// How many of some sets hold each member, for all members at once: the counts stand bit by bit in
// planes, to which sets are added sixteen at a time.
template <size_t kWords>
class MemberCounts {
 public:
  using Set = Bits<kWords>;

  // `indices` name the sets in `sets`; their number is a multiple of kBatch.
  static constexpr size_t kBatch = 16;
  MemberCounts(const Set* sets, std::span<const int> indices)
      : n_planes_(static_cast<size_t>(std::bit_width(indices.size()))) {
    for (size_t i = 0; i < indices.size(); i += kBatch) {
      Set carry = add<kFirstLate>(sets, indices.data() + i);
      for (size_t p = kFirstLate; p < n_planes_; ++p) {
        for (size_t w = 0; w < kWords; ++w) {
          carry[w] &= std::exchange(plane_[p][w], plane_[p][w] ^ carry[w]);
        }
      }
    }
  }

  int count(size_t member) const {
    int n = 0;
    for (size_t p = 0; p < n_planes_; ++p) n |= static_cast<int>(has(plane_[p], member)) << p;
    return n;
  }

  // Leaves in `members` those of the n-th highest count, moves those of higher counts to `higher`,
  // and returns how many of those left make n.
  int split_at(int n, Set& members, Set& higher) const {
    for (size_t p = n_planes_; p-- > 0;) {
      Set ones = {};
      int n_ones = 0;
      for (size_t w = 0; w < kWords; ++w) {
        ones[w] = members[w] & plane_[p][w];
        n_ones += std::popcount(ones[w]);
      }
      const bool are_few = n_ones < n;
      if (are_few) n -= n_ones;
      for (size_t w = 0; w < kWords; ++w) {
        higher[w] |= are_few ? ones[w] : 0;
        members[w] = are_few ? members[w] ^ ones[w] : ones[w];
      }
    }
    return n;
  }

 private:
  static constexpr size_t kMaxPlanes = 24;  // more than all experts of the largest model need
  static constexpr size_t kFirstLate = std::bit_width(kBatch) - 1;  // plane that batches carry into

  // Adds 2^kPlanes sets to as many planes; returns what they carry.
  template <size_t kPlanes>
  Set add(const Set* sets, const int* indices) {
    if constexpr (kPlanes == 0) {
      return sets[*indices];
    } else {
      const Set a = add<kPlanes - 1>(sets, indices);
      const Set b = add<kPlanes - 1>(sets, indices + (size_t{1} << (kPlanes - 1)));
      Set& plane = plane_[kPlanes - 1];
      Set carry;
      for (size_t w = 0; w < kWords; ++w) {
        const uint64_t differ = a[w] ^ b[w];
        carry[w] = (a[w] & b[w]) | (differ & plane[w]);
        plane[w] ^= differ;
      }
      return carry;
    }
  }

  size_t n_planes_;
  std::array<Set, kMaxPlanes> plane_ = {};
};

}  // namespace

RoutingMixture::RoutingMixture(size_t n_total)
    : n_total_(n_total),
      last_use_(n_total, -kNever),
      values_((n_total + 63) / 64 * 64, 0.0f),
      n_row_words_((n_total + 63) / 64),
      rows_(kHistory * n_row_words_, 0),
      history_(n_total + 1),
      sample_(n_total + MemberCounts<kWords>::kBatch) {
  weight_.fill(1.0f / static_cast<float>(kPredictors));
  count_norm_.fill(kTiny);
  unit_.fill(1.0);
  for (std::vector<float>& count : count_) count.assign(n_total, kTiny);
}

void RoutingMixture::seed(std::span<const float> rates) {
  constexpr size_t kSlowest = kScales - 1;
  for (size_t i = 0; i < n_total_; ++i) count_[kSlowest][i] = rates[i] * kSeedSteps + kTiny;
  count_norm_[kSlowest] = kSeedSteps;
  set_value_weights();
  set_values();
}

inline float RoutingMixture::follows(size_t id) const {
  const History& history = history_[id];
  int sum = 0;
  for (size_t plane = 0; plane < kPlanes; ++plane) {
    int n = 0;
    for (size_t w = 0; w < kWords; ++w) n += std::popcount(history[w] & follow_plane_[plane][w]);
    sum += n << plane;
  }
  return static_cast<float>(sum) * follow_scale_;
}

size_t RoutingMixture::list_below(double ceiling, std::span<const uint64_t> set, std::span<int> ids,
                                  std::span<double> values) const {
  const bool is_limited = ceiling < std::numeric_limits<double>::infinity();
  size_t n = 0;
  for (size_t w = 0; w < set.size(); ++w) {
    uint64_t bits = set[w];
    if (bits == 0) continue;
    // What neighbours say can only add, so most need not be asked.
    if (is_limited) bits &= at_most(static_cast<float>(ceiling), values_.data() + w * 64);
    for (; bits != 0; bits &= bits - 1) {
      const size_t i = w * 64 + static_cast<size_t>(std::countr_zero(bits));
      const double value = values_[i] + static_cast<double>(lean_[neighbours] * follows(i));
      ids[n] = static_cast<int>(i);  // stays only if counted: no branch to guess
      values[n] = value;
      n += value < ceiling;
    }
  }
  return n;
}

// One step of expectation maximisation: a predictor's weight moves towards its share of the
// probability that the mixture gave to what was then used.
void RoutingMixture::learn_weights(std::span<const Use> uses) {
  Probabilities share = {};
  float n = 0.0f;
  const float even = static_cast<float>(uses.size()) / static_cast<float>(n_total_);
  Probabilities per_count = {};
  for (size_t s = 0; s < kScales; ++s) {
    per_count[count_8 + s] = static_cast<float>(1.0 / (count_norm_[s] * unit_[s]));
  }
  for (size_t u = n_steps_ % kLearnEvery; u < uses.size(); u += kLearnEvery) {
    const auto i = static_cast<size_t>(uses[u].id);
    Probabilities p = {recency_of(now_ - last_use_[i]), 0.0f, 0.0f, 0.0f, follows(i), even};
    for (size_t s = 0; s < kScales; ++s) p[count_8 + s] = count_[s][i] * per_count[count_8 + s];
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
  for (const Use& use : uses) last_use_[static_cast<size_t>(use.id)] = now_;
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

// One pass over all experts, made of vector instructions.
void RoutingMixture::set_values() {
  static_assert(kScales == 3);
  const float* const __restrict a = count_[0].data();
  const float* const __restrict b = count_[1].data();
  const float* const __restrict c = count_[2].data();
  const float* const __restrict last_use = last_use_.data();
  float* const __restrict values = values_.data();
  const float w = lean_[recency];
  const float now = now_;
  const auto [wa, wb, wc] = count_lean_;
  for (size_t i = 0; i < n_total_; ++i) {
    values[i] = w * recency_of(now - last_use[i]) + wa * a[i] + wb * b[i] + wc * c[i];
  }
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
