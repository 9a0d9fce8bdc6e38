// Sixteen queries over some keys, what they must give in float64, and within which derived bound:
// for the passes of wide attention (wide_attend_body_test.cpp, group_attend_body_test.cpp).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "backend/cuda/wide_attend_pass.h"
#include "base/random.h"
#include "quant/half.h"

namespace sluice::backend::cuda {

constexpr double kWideRounding = 0x1p-24;

inline float wide_random(uint64_t seed, int i, float size) {
  return size * random_signed(random_bits(seed, static_cast<uint64_t>(i)));
}

// Sixteen queries, the r-th of which sees the first limit(r) of n keys.
template <int dims, bool bf16>
class WideCase {
 public:
  WideCase(int n_keys, int step, float query_size, bool by_groups = false)
      : n_(n_keys), step_(step) {
    for (int i = 0; i < kPassRows * dims; ++i) q_.push_back(wide_random(1, i, query_size));
    for (int i = 0; i < n_ * dims; ++i) {
      k_.push_back(stored(wide_random(2, i, 1.0f)));
      v_.push_back(stored(wide_random(3, i, 1.0f)));
    }
    halves_.resize(kPassRows * kQueryParts * dims);
    float scales[kPassRows];
    for (int r = 0; r < kPassRows; ++r) {
      scales[r] = write_query<dims, bf16>(&q_[at(r, 0)], dims, by_groups,
                                          &halves_[kQueryParts * at(r, 0)])[0];
    }
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int r = 0; r < 2; ++r) {
        const int row = lane / 4 + 8 * r;
        queries_[r][lane] = &halves_[kQueryParts * at(row, 0)];
        scales_[r][lane] = scales[row], limits_[r][lane] = limit(row);
      }
    }
    out_.assign(kPassRows * dims, 7.0f);
  }

  void expect_within_the_bound() const {
    for (int r = 0; r < kPassRows; ++r) expect_row(r);
  }

 protected:
  static size_t at(int row, int column) { return static_cast<size_t>(row * dims + column); }
  int limit(int r) const { return std::max(0, n_ - step_ * (kPassRows - 1 - r)); }
  // Keys that there are not are no numbers; values are zero.
  uint16_t key(int position, int i) const { return position < n_ ? k_[at(position, i)] : 0x7fffu; }
  uint16_t value(int position, int i) const { return position < n_ ? v_[at(position, i)] : 0; }

  int n_;
  PerLane<const uint16_t*> queries_[2];
  PerLane<float> scales_[2];
  PerLane<int> limits_[2];
  std::vector<float> out_;  // [16, dims], for the pass

 private:
  static uint16_t stored(float x) { return bf16 ? quant::f32_to_bf16(x) : quant::f32_to_f16(x); }
  static double number(uint16_t x) { return bf16 ? quant::bf16_to_f32(x) : quant::f16_to_f32(x); }

  void expect_row(int r) const {
    const double factor = 1 / std::sqrt(double{dims});
    std::vector<double> scores;
    double peak = -1e300, error = 0.0, largest = 0.0, spread = 0.0, sum = 0.0;
    for (int i = 0; i < dims; ++i) {
      largest = std::max(largest, std::abs(static_cast<double>(q_[at(r, i)])));
    }
    for (int p = 0; p < limit(r); ++p) {
      double dot = 0.0, size = 0.0, keys = 0.0;
      for (int i = 0; i < dims; ++i) {
        const double k = number(k_[at(p, i)]), q = static_cast<double>(q_[at(r, i)]);
        dot += q * k, size += std::abs(q * k), keys += std::abs(k);
      }
      scores.push_back(factor * dot);
      peak = std::max(peak, factor * dot);
      // A chain of 2 dims fused additions, the factor's three roundings; and what two parts leave:
      // of f16 2^-22 or the smallest step of the largest number, of bf16 2^-16.
      const double parts = bf16 ? 0x1p-15 * size : 4 * kWideRounding * size;
      error = std::max(error, factor * ((2 * dims + 4) * kWideRounding * size + parts +
                                        kWideRounding * largest * keys));
    }
    for (const double s : scores) sum += std::exp(s - peak), spread = std::max(spread, peak - s);
    // Powers of two err by two scores' errors and by the rounding of up to spread + 15 bits; each
    // position is added twice, and each sixteen may be scaled.
    const double weight =
        2 * error + (2 * spread + 32 + 4) * kWideRounding + (bf16 ? 0x1p-15 : 4 * kWideRounding);
    const double relative = weight + (2.5 * n_ + 16) * kWideRounding;
    for (int i = 0; i < dims; ++i) {
      double value = 0.0, size = 0.0;
      for (int p = 0; p < limit(r); ++p) {
        const double share = std::exp(scores[static_cast<size_t>(p)] - peak) / sum;
        const double v = number(v_[at(p, i)]);
        value += share * v, size += share * std::abs(v);
      }
      ASSERT_LT(relative, 0.01) << "the bound shows nothing";
      ASSERT_NEAR(value, static_cast<double>(out_[at(r, i)]), 2 * relative * size)
          << n_ << " keys, row " << r << ", dimension " << i;
    }
  }

  int step_;
  std::vector<float> q_;
  std::vector<uint16_t> k_, v_, halves_;
};

// Case: of WideCase, run when it is made.
template <typename Case>
void expect_every_number_of_keys() {
  for (const int n : {1, 2, 15, 16, 33, 64, 65, 130}) {
    Case(n, 0, 2.0f).expect_within_the_bound();
    Case(n, 1, 2.0f).expect_within_the_bound();
  }
  Case(150, 9, 2.0f).expect_within_the_bound();
  // f16 would hold neither of these.
  Case(20, 1, 3e-6f).expect_within_the_bound();
}

}  // namespace sluice::backend::cuda
