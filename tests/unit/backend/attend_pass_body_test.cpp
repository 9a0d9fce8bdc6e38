// Attention's pass over positions as the kernel makes it (backend/cuda/attend_pass.h), compiled by
// g++ with a warp as 32 loops: against float64, for every size of head and any number of positions,
// within a derived bound; and sums of products (half_product.h) by their definition.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/attend_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "quant/half.h"

namespace sluice::backend::cuda {
namespace {

constexpr double kRounding = 0x1p-24;

float random_near(uint64_t seed, int i, float size) {
  return size * random_signed(random_bits(seed, static_cast<uint64_t>(i)));
}

// Queries of eight heads, and keys and values as a cache stores them.
template <int dims, bool bf16>
class PassCase {
 public:
  PassCase(int n_positions, float query_size) : n_(n_positions) {
    for (int i = 0; i < kHeadsAtOnce * dims; ++i) q_.push_back(random_near(1, i, query_size));
    for (int i = 0; i < n_ * dims; ++i) {
      k_.push_back(stored(random_near(2, i, 1.0f)));
      v_.push_back(stored(random_near(3, i, 1.0f)));
    }
    for (int h = 0; h < kHeadsAtOnce; ++h) queries_->set(&q_[at(h, 0)], kFactor, h);
    pass_.begin();
    for (int first = 0; first < n_; first += kPositionsAtOnce) add(first);
    values_.resize(kHeadsAtOnce * dims);
    pass_.write(values_.data(), peaks_, sums_);
  }

  void expect_within_the_bound() const {
    for (int h = 0; h < kHeadsAtOnce; ++h) expect_head(h);
  }

 private:
  static constexpr float kFactor = 0.125f;
  static size_t at(int row, int column) { return static_cast<size_t>(row * dims + column); }
  static uint16_t stored(float x) { return bf16 ? quant::f32_to_bf16(x) : quant::f32_to_f16(x); }
  static double number(uint16_t x) { return bf16 ? quant::bf16_to_f32(x) : quant::f16_to_f32(x); }

  // Positions that there are not: keys that are not numbers, values that are.
  void add(int first) {
    auto kv = std::make_unique<KeysAndValues<dims>>();
    for (int p = 0; p < kPositionsAtOnce; ++p) {
      auto* const key = reinterpret_cast<uint16_t*>(kv->keys[p]);
      auto* const value = reinterpret_cast<uint16_t*>(kv->values[p]);
      for (int i = 0; i < dims; ++i) {
        const bool exists = first + p < n_;
        key[i] = exists ? k_[at(first + p, i)] : 0x7fffu;
        value[i] = exists ? v_[at(first + p, i)] : 0;
      }
    }
    pass_.add(*queries_, *kv, n_ - first);
  }

  void expect_head(int h) const {
    std::vector<double> scores;
    double peak = -1e300, error = 0.0, largest = 0.0;
    for (int i = 0; i < dims; ++i) {
      largest = std::max(largest, std::abs(kFactor * static_cast<double>(q_[at(h, i)])));
    }
    for (int p = 0; p < n_; ++p) {
      double dot = 0.0, size = 0.0, keys = 0.0;
      for (int i = 0; i < dims; ++i) {
        const double k = number(k_[at(p, i)]), q = kFactor * static_cast<double>(q_[at(h, i)]);
        dot += q * k, size += std::abs(q * k), keys += std::abs(k);
      }
      scores.push_back(dot);
      peak = std::max(peak, dot);
      // Two chains of up to dims fused additions, three sums and a scale; what a split in two
      // (2^-22) leaves of a query, and its smallest step.
      error = std::max(error, (dims + 4 + 4) * kRounding * size + kRounding * largest * keys);
    }
    ASSERT_NEAR(peak, static_cast<double>(peaks_[h]), error) << h;
    double sum = 0.0, spread = 0.0;
    for (const double s : scores) sum += std::exp(s - peak), spread = std::max(spread, peak - s);
    // Weights err by twice a score's error and a few roundings, and are split in two; each position
    // is added, and each sixteen positions may be scaled.
    const double each = 2 * error + (spread + 3 + 4) * kRounding;
    const double relative = each + (1.25 * n_ + 16) * kRounding;
    ASSERT_NEAR(1.0, sums_[h] / sum, 2 * relative) << h;
    for (int i = 0; i < dims; ++i) {
      double value = 0.0, size = 0.0;
      for (int p = 0; p < n_; ++p) {
        const double weight = std::exp(scores[static_cast<size_t>(p)] - peak);
        value += weight * number(v_[at(p, i)]), size += weight * std::abs(number(v_[at(p, i)]));
      }
      ASSERT_LT(relative, 0.01) << "the bound shows nothing";
      ASSERT_NEAR(value, static_cast<double>(values_[static_cast<size_t>(merged_at<dims>(h, i))]),
                  2 * relative * size)
          << n_ << " positions, head " << h << ", dimension " << i;
    }
  }

  int n_;
  std::vector<float> q_, values_;
  std::vector<uint16_t> k_, v_;
  std::unique_ptr<Queries<dims, bf16>> queries_ = std::make_unique<Queries<dims, bf16>>();
  AttendPass<dims, bf16> pass_;
  float peaks_[kHeadsAtOnce], sums_[kHeadsAtOnce];
};

template <int dims, bool bf16>
void expect_every_number_of_positions() {
  for (const int n : {1, 2, 9, 15, 16, 17, 31, 48, 130}) {
    PassCase<dims, bf16>(n, 2.0f).expect_within_the_bound();
  }
  // f16 would hold neither of these.
  PassCase<dims, bf16>(20, 3e-6f).expect_within_the_bound();
}

TEST(AttendPassBodyTest, HeadsOf64) {
  expect_every_number_of_positions<64, false>();
  expect_every_number_of_positions<64, true>();
}
TEST(AttendPassBodyTest, HeadsOf128) {
  expect_every_number_of_positions<128, false>();
  expect_every_number_of_positions<128, true>();
}
TEST(AttendPassBodyTest, HeadsOf256) {
  expect_every_number_of_positions<256, false>();
  expect_every_number_of_positions<256, true>();
}

TEST(AttendPassBodyTest, QueriesOfAnySizeAreTheirTwoParts) {
  for (const float size : {1e-30f, 1.0f, 7e4f, 1e30f}) {
    std::vector<float> head(128);
    for (int i = 0; i < 128; ++i) head[static_cast<size_t>(i)] = random_near(5, i, size);
    Queries<128, false> queries;
    queries.set(head.data(), 1.0f, 3);
    float largest = 0.0f;
    for (const float x : head) largest = std::max(largest, std::abs(x));
    for (int i = 0; i < 128; ++i) {
      const int m = i / 32, t = i % 32 / 8, s = i % 8 / 4;
      const uint4& words = queries.words[2 * m + s][0][4 * 3 + t];
      const uint32_t high = i % 4 / 2 ? words.z : words.x, low = i % 4 / 2 ? words.w : words.y;
      const double got = static_cast<double>(queries.scale[3]) *
                         (static_cast<double>(half_of<false>(high, i % 2)) +
                          static_cast<double>(half_of<false>(low, i % 2)));
      const double want = head[static_cast<size_t>(i)];
      ASSERT_NEAR(want, got, 0x1p-22 * std::abs(want) + 0x1p-24 * static_cast<double>(largest))
          << i;
    }
  }
}

// Merged sums are a permutation of a head's columns, four by four.
TEST(AttendPassBodyTest, EverySumHasAPlaceOfItsOwn) {
  std::vector<bool> is_taken(kHeadsAtOnce * 128);
  for (int h = 0; h < kHeadsAtOnce; ++h) {
    for (int i = 0; i < 128; ++i) {
      const int at = merged_at<128>(h, i);
      ASSERT_EQ(at % 4, i % 4);
      ASSERT_FALSE(is_taken[static_cast<size_t>(at)]) << h << ", " << i;
      is_taken[static_cast<size_t>(at)] = true;
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
