// Attention of sixteen queries by one warp of a group as the kernel makes it
// (backend/cuda/group_attend_pass.h), compiled by g++ with a warp as 32 loops and the tensor cores'
// products by their definition: against float64 within a derived bound, and int8 results.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/group_attend_pass.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "quant/activation.h"
#include "wide_case.h"

namespace sluice::backend::cuda {
namespace {

template <int dims, bool bf16>
class GroupPassCase : public WideCase<dims, bf16> {
 public:
  static constexpr int kKeys = 64;
  using Tile = GroupTile<dims, kKeys>;

  // Tile by tile as the kernel does it: scores are a tile ahead of values.
  GroupPassCase(int n_keys, int step, float query_size)
      : WideCase<dims, bf16>(n_keys, step, query_size, true) {
    auto pass = std::make_unique<GroupPass<dims, bf16, kKeys>>();
    pass->begin(this->queries_, this->scales_);
    for (int first = 0; first < this->n_; first += kKeys) {
      pass->score(*keys(first));
      if (first > 0) pass->add_values(*values(first - kKeys));
      pass->soften(first, first + kKeys > this->limit(0), this->limits_);
      pass->settle();
    }
    pass->add_values(*values((this->n_ - 1) / kKeys * kKeys));
    pass->end([&](int r, int column, const auto& columns) {
      for (int lane = 0; lane < kWarp; ++lane) {
        for (int j = 0; j < 8; ++j) {
          this->out_[this->at(lane / 4 + 8 * r, column + j / 2 * 8 + lane % 4 * 2 + j % 2)] =
              columns[lane].v[j];
        }
      }
    });
  }

 private:
  template <typename Number>
  static std::unique_ptr<Tile> tile(const Number& number) {
    auto out = std::make_unique<Tile>();
    for (int p = 0; p < kKeys; ++p) {
      for (int i = 0; i < dims; ++i) {
        auto* const sixteen = out->bytes[0] + Tile::offset(p, i / 8 * 16);
        reinterpret_cast<uint16_t*>(sixteen)[i % 8] = number(p, i);
      }
    }
    return out;
  }
  std::unique_ptr<Tile> keys(int first) const {
    return tile([&](int p, int i) { return this->key(first + p, i); });
  }
  std::unique_ptr<Tile> values(int first) const {
    return tile([&](int p, int i) { return this->value(first + p, i); });
  }
};

TEST(GroupAttendBodyTest, SixteenBytesOfEightLinesAreInDifferentBanks) {
  using Tile = GroupTile<128, 64>;
  for (int at = 0; at < 256; at += 16) {
    std::vector<int> banks;
    for (int key = 8; key < 16; ++key) banks.push_back(Tile::offset(key, at) % kLineBytes);
    std::ranges::sort(banks);
    for (int i = 0; i < 8; ++i) EXPECT_EQ(banks[static_cast<size_t>(i)], 16 * i) << at;
  }
}

TEST(GroupAttendBodyTest, BlocksAreQuantisedAsTheContractSays) {
  for (const float size : {0.0f, 1e-32f, 1.0f, 3e7f}) {
    PerLane<EightColumns> values;
    std::vector<float> rows(kWarp * 8);
    for (int i = 0; i < kWarp * 8; ++i) {
      const int lane = i / 32 * 4 + i % 8 / 2;
      rows[static_cast<size_t>(i)] = values[lane].v[i % 32 / 8 * 2 + i % 2] =
          wide_random(5, i, size);
    }
    alignas(16) int8_t q[kWarp * 8];
    float d[kWarp / 4], y[kWarp / 4];
    PerLane<Int8Place> to;
    for (int i = 0; i < kWarp; ++i) to[i] = {q + i / 4 * 32, d + i / 4, y + i / 4, true};
    quantize_block(values, to);
    std::vector<int8_t> want_q(rows.size());
    std::vector<float> want_d(kWarp / 4), want_y(kWarp / 4);
    quant::quantize_activation(rows, want_q.data(), want_d.data(), want_y.data());
    EXPECT_TRUE(std::ranges::equal(want_q, q)) << size;
    EXPECT_TRUE(std::ranges::equal(want_d, d)) << size;
    EXPECT_TRUE(std::ranges::equal(want_y, y)) << size;
  }
}

TEST(GroupAttendBodyTest, HeadsOf64) {
  expect_every_number_of_keys<GroupPassCase<64, false>>();
  expect_every_number_of_keys<GroupPassCase<64, true>>();
}
TEST(GroupAttendBodyTest, HeadsOf128) {
  expect_every_number_of_keys<GroupPassCase<128, false>>();
  expect_every_number_of_keys<GroupPassCase<128, true>>();
}

}  // namespace
}  // namespace sluice::backend::cuda
