// Attention of sixteen queries over tiles of keys as the kernel makes it
// (backend/cuda/wide_attend_pass.h), compiled by g++ with a warp as 32 loops: against float64, for
// every size of head, any number of keys and rows that see different ones, within a derived bound.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_attend_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "quant/activation.h"
#include "wide_case.h"

namespace sluice::backend::cuda {
namespace {

// One warp's pass over the case.
template <int dims, bool bf16>
class WidePassCase : public WideCase<dims, bf16> {
 public:
  static constexpr int kKeys = KvTile<dims>::kKeys;

  WidePassCase(int n_keys, int step, float query_size)
      : WideCase<dims, bf16>(n_keys, step, query_size) {
    auto pass = std::make_unique<WidePass<dims, bf16>>();
    pass->begin(this->queries_, this->scales_);
    for (int first = 0; first < this->n_; first += kKeys) {
      pass->add(*tile(first), first, first + kKeys > this->limit(0), this->limits_);
    }
    pass->end([&](int r, int column, const auto& columns) {
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int j = 0; j < 16; ++j) {
          this->out_[this->at(lane / 4 + 8 * r, column + lane % 4 * 16 + j)] = columns[lane].v[j];
        }
      }
    });
  }

 private:
  std::unique_ptr<KvTile<dims>> tile(int first) const {
    auto kv = std::make_unique<KvTile<dims>>();
    for (int p = 0; p < kKeys; ++p) {
      auto* const keys = reinterpret_cast<uint16_t*>(kv->keys[p]);
      auto* const values = reinterpret_cast<uint16_t*>(kv->values[p]);
      for (int i = 0; i < dims; ++i) {
        keys[i] = this->key(first + p, i), values[i] = this->value(first + p, i);
      }
    }
    return kv;
  }
};

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
  expect_every_number_of_keys<WidePassCase<64, false>>();
  expect_every_number_of_keys<WidePassCase<64, true>>();
}
TEST(WideAttendBodyTest, HeadsOf128) {
  expect_every_number_of_keys<WidePassCase<128, false>>();
  expect_every_number_of_keys<WidePassCase<128, true>>();
}
TEST(WideAttendBodyTest, HeadsOf256) {
  expect_every_number_of_keys<WidePassCase<256, false>>();
  expect_every_number_of_keys<WidePassCase<256, true>>();
}

}  // namespace
}  // namespace sluice::backend::cuda
