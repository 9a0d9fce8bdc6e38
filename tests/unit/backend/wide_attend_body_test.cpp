// Attention of sixteen queries over tiles of keys as the kernel makes it
// (backend/cuda/wide_attend_pass.h), compiled by g++ with a warp as 32 loops: against float64, for
// every size of head, any number of keys and rows that see different ones, within a derived bound.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_attend_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "base/random.h"
#include "quant/activation.h"
#include "quant/half.h"

namespace sluice::backend::cuda {
namespace {

constexpr double kWideRounding = 0x1p-24;

float wide_random(uint64_t seed, int i, float size) {
  return size * random_signed(random_bits(seed, static_cast<uint64_t>(i)));
}

// Sixteen queries, the r-th of which sees the first limit(r) of n keys.
template <int dims, bool bf16>
class WidePassCase {
 public:
  static constexpr int kKeys = KvTile<dims>::kKeys;

  WidePassCase(int n_keys, int step, float query_size) : n_(n_keys), step_(step) {
    for (int i = 0; i < kPassRows * dims; ++i) q_.push_back(wide_random(1, i, query_size));
    for (int i = 0; i < n_ * dims; ++i) {
      k_.push_back(stored(wide_random(2, i, 1.0f)));
      v_.push_back(stored(wide_random(3, i, 1.0f)));
    }
    run();
  }

  void expect_within_the_bound() const {
    for (int r = 0; r < kPassRows; ++r) expect_row(r);
  }

 private:
  static size_t at(int row, int column) { return static_cast<size_t>(row * dims + column); }
  static uint16_t stored(float x) { return bf16 ? quant::f32_to_bf16(x) : quant::f32_to_f16(x); }
  static double number(uint16_t x) { return bf16 ? quant::bf16_to_f32(x) : quant::f16_to_f32(x); }
  int limit(int r) const { return std::max(0, n_ - step_ * (kPassRows - 1 - r)); }

  void run() {
    std::vector<uint16_t> halves(kPassRows * kQueryParts * dims);
    float scales[kPassRows];
    for (int r = 0; r < kPassRows; ++r) {
      scales[r] = write_query<dims, bf16>(&q_[at(r, 0)], dims, &halves[kQueryParts * at(r, 0)])[0];
    }
    PerLane<const uint16_t*> queries[2];
    PerLane<float> own[2];
    PerLane<int> limits[2];
    for (int lane = 0; lane < kWarp; ++lane) {
      for (int r = 0; r < 2; ++r) {
        const int row = lane / 4 + 8 * r;
        queries[r][lane] = &halves[kQueryParts * at(row, 0)];
        own[r][lane] = scales[row], limits[r][lane] = limit(row);
      }
    }
    auto pass = std::make_unique<WidePass<dims, bf16>>();
    pass->begin(queries, own);
    for (int first = 0; first < n_; first += kKeys) {
      pass->add(*tile(first), first, first + kKeys > limit(0), limits);
    }
    out_.assign(kPassRows * dims, 7.0f);
    pass->end([&](int r, int column, const auto& columns) {
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int j = 0; j < 16; ++j) {
          out_[at(lane / 4 + 8 * r, column + lane % 4 * 16 + j)] = columns[lane].v[j];
        }
      }
    });
  }

  // Keys that there are not are no numbers; values are zero.
  std::unique_ptr<KvTile<dims>> tile(int first) const {
    auto kv = std::make_unique<KvTile<dims>>();
    for (int p = 0; p < kKeys; ++p) {
      auto* const key = reinterpret_cast<uint16_t*>(kv->keys[p]);
      auto* const value = reinterpret_cast<uint16_t*>(kv->values[p]);
      for (int i = 0; i < dims; ++i) {
        const bool exists = first + p < n_;
        key[i] = exists ? k_[at(first + p, i)] : 0x7fffu;
        value[i] = exists ? v_[at(first + p, i)] : 0;
      }
    }
    return kv;
  }

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

  int n_, step_;
  std::vector<float> q_, out_;
  std::vector<uint16_t> k_, v_;
};

template <int dims, bool bf16>
void expect_every_number_of_keys() {
  for (const int n : {1, 2, 15, 16, 33, 64, 65, 130}) {
    WidePassCase<dims, bf16>(n, 0, 2.0f).expect_within_the_bound();
    WidePassCase<dims, bf16>(n, 1, 2.0f).expect_within_the_bound();
  }
  WidePassCase<dims, bf16>(150, 9, 2.0f).expect_within_the_bound();
  // f16 would hold neither of these.
  WidePassCase<dims, bf16>(20, 1, 3e-6f).expect_within_the_bound();
}

TEST(WideAttendBodyTest, ColumnsAreQuantisedAsTheContractSays) {
  for (const float size : {0.0f, 1e-32f, 1.0f, 3e7f}) {
    PerLane<SixteenColumns> values;
    std::vector<float> rows(kWarp * 16);
    for (int i = 0; i < kWarp * 16; ++i) {
      rows[static_cast<size_t>(i)] = values[i / 16].v[i % 16] = wide_random(5, i, size);
    }
    alignas(16) int8_t q[kWarp * 16];
    float d[kWarp / 2], y[kWarp / 2];
    PerLane<Int8Place> to;
    for (int i = 0; i < kWarp; ++i) to[i] = {q + 16 * i, d + i / 2, y + i / 2, true};
    quantize_columns(values, to);
    std::vector<int8_t> want_q(rows.size());
    std::vector<float> want_d(kWarp / 2), want_y(kWarp / 2);
    quant::quantize_activation(rows, want_q.data(), want_d.data(), want_y.data());
    EXPECT_TRUE(std::ranges::equal(want_q, q)) << size;
    EXPECT_TRUE(std::ranges::equal(want_d, d)) << size;
    EXPECT_TRUE(std::ranges::equal(want_y, y)) << size;
  }
}

TEST(WideAttendBodyTest, HeadsOf64) {
  expect_every_number_of_keys<64, false>();
  expect_every_number_of_keys<64, true>();
}
TEST(WideAttendBodyTest, HeadsOf128) {
  expect_every_number_of_keys<128, false>();
  expect_every_number_of_keys<128, true>();
}
TEST(WideAttendBodyTest, HeadsOf256) {
  expect_every_number_of_keys<256, false>();
  expect_every_number_of_keys<256, true>();
}

}  // namespace
}  // namespace sluice::backend::cuda
