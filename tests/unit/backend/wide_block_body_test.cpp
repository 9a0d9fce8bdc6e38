// A warp's part of a wide block (backend/cuda/wide_block_body.h), compiled by g++ with a warp as 32
// loops: its sums against quant/, and hidden values where its stripes are gate's and up's.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_block_body.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "quant/dot.h"
#include "quant/random_rows.h"
#include "quant/stripes.h"
#include "quant/swiglu.h"
#include "unit/backend/wide_inputs.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kPairs = 2, kStripes = 2 * kPairs;

// A chunk of the first inputs, as a block has it in shared memory.
void stage(TileRows& in, int chunk, int n_inputs, uint8_t* out) {
  for (int i = 0; i < n_inputs * kTilePieces; ++i) {
    const int64_t at = int64_t{i / kTilePieces} * in.n_chunks + chunk;
    std::memcpy(out + kTileInputBytes * (i / kTilePieces) + 16 * (i % kTilePieces),
                tile_piece(in.rows(), at, i % kTilePieces), 16);
  }
}

class WideBlockBodyTest : public testing::TestWithParam<Type> {
 protected:
  void make_stripes(int n_cols) {
    row_bytes_ = quant::row_bytes(GetParam(), n_cols);
    rows_.resize(8 * kStripes * row_bytes_);
    stripes_.assign(rows_.size(), uint8_t{0xff});
    const auto n = static_cast<int64_t>(rows_.size() / quant::type_info(GetParam()).block_bytes);
    quant::random_row_blocks(GetParam(), 5, 0, n, 0.25f, rows_.data());
    for (size_t at = 0; at < rows_.size(); at += 8 * row_bytes_) {
      quant::weave_rows(GetParam(), n_cols, rows_.data() + at,
                        reinterpret_cast<std::byte*>(stripes_.data()) + at);
    }
  }
  float dot(int row, int n_cols, const quant::ActivationView& in) const {
    return quant::dot(GetParam(), rows_.data() + tile_count(row) * row_bytes_, n_cols, in);
  }

  template <int groups>
  void add_chunks(TileRows& in, int n_inputs, PerLane<BlockSums<kPairs, groups>>& sums) const {
    alignas(16) uint8_t inputs[8 * groups * kTileInputBytes];
    std::memset(inputs, 0xff, sizeof inputs);  // not numbers, behind the last input
    const RowShape shape = row_shape(in.n_cols);
    clear_sums(sums);
    for (int c = 0; c < shape.n_chunks; ++c) {
      stage(in, c, n_inputs, inputs);
      with_type([&]<Type type>() {
        const auto at = [&](size_t k) {
          return stripes_.data() + 8 * k * row_bytes_ + tile_count(chunk_offset<type>(c));
        };
        add_block_chunk<type, kPairs, groups, 1>(
            {at(0), at(1), at(2), at(3)}, blocks_of<type>(shape, c), inputs, product_start(), sums);
      });
    }
  }
  template <typename Use>
  void with_type(const Use& use) const {
    switch (GetParam()) {
      case Type::q5_k:
        return use.template operator()<Type::q5_k>();
      case Type::q6_k:
        return use.template operator()<Type::q6_k>();
      case Type::q8_0:
        return use.template operator()<Type::q8_0>();
      default:
        return use.template operator()<Type::q4_k>();
    }
  }

  template <int groups>
  void check_sums(int n_inputs, int n_cols) {
    TileRows in(n_inputs, n_cols, 11);
    PerLane<BlockSums<kPairs, groups>> sums;
    add_chunks(in, n_inputs, sums);
    for (int i = 0; i < 8 * kStripes * n_inputs; ++i) {
      const int k = i % n_inputs, row = i / n_inputs;
      const float want = dot(row, n_cols, in.view(k));
      const int lane = row % 8 * 4 + k % 8 / 2;
      const float got = sums[lane].of[row / 16][k / 8][row / 8 % 2 * 2 + k % 2];
      ASSERT_EQ(std::bit_cast<uint32_t>(want), std::bit_cast<uint32_t>(got))
          << n_inputs << " inputs, row " << row << ", input " << k << ": expected " << want
          << ", got " << got;
    }
  }

  size_t row_bytes_ = 0;
  std::vector<std::byte> rows_;
  std::vector<uint8_t> stripes_;
};

TEST_P(WideBlockBodyTest, SumsAreThoseOfTheContract) {
  const int n_cols = quant::type_info(GetParam()).block_elems == 256 ? 768 : 704;
  make_stripes(n_cols);
  check_sums<1>(1, n_cols);
  check_sums<1>(8, n_cols);
  check_sums<2>(13, n_cols);
  check_sums<3>(24, n_cols);
}

// The first pair of stripes is gate's, the second up's: 16 hidden values of a warp. Blocks are
// written four at a time, of which the last call has three.
TEST_P(WideBlockBodyTest, HiddenValuesAreThoseOfTheContract) {
  constexpr int kInputs = 11, kHidden = 32, kFirstSlot = 2;
  make_stripes(256);
  TileRows in(kInputs, 256, 17);
  PerLane<BlockSums<kPairs, 2>> sums;
  add_chunks(in, kInputs, sums);
  alignas(16) float hidden[16 * kHiddenStride<kHidden>];
  std::fill(std::begin(hidden), std::end(hidden), std::nanf(""));
  stage_hidden<kHidden>(sums, hidden, 0);
  stage_hidden<kHidden>(sums, hidden, 16);  // as if another warp had the same
  TileRows h(kFirstSlot + kInputs + 1, 64, 18);
  const TileRows before = h;
  std::vector<int32_t> slots(kInputs);
  for (int k = 0; k < kInputs; ++k) slots[tile_count(k)] = kFirstSlot + (k * 5) % kInputs;
  for (int i = 0; i < kInputs; i += 4) {
    write_staged_hidden<kHidden>(hidden, slots.data(), i, kInputs, 1, 2, h.rows());
  }
  for (int k = 0; k < kInputs; ++k) {
    std::vector<float> gate(32), up(32);
    for (int i = 0; i < 32; ++i) {
      gate[tile_count(i)] = dot(i % 16, 256, in.view(k));
      up[tile_count(i)] = dot(16 + i % 16, 256, in.view(k));
    }
    quant::swiglu(gate, up, gate.data());
    int8_t q[32];
    float d = 0.0f, y = 0.0f;
    quant::quantize_activation(gate, q, &d, &y);
    const quant::ActivationView got = h.view(slots[tile_count(k)]);
    EXPECT_EQ(std::memcmp(q, got.q + 32, 32), 0) << "input " << k;
    EXPECT_EQ(std::bit_cast<uint32_t>(d), std::bit_cast<uint32_t>(got.d[1])) << "input " << k;
    EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(got.y[1])) << "input " << k;
  }
  for (const int slot : {0, 1, kFirstSlot + kInputs}) {
    EXPECT_EQ(std::memcmp(h.view(slot).q, TileRows(before).view(slot).q, 64), 0) << slot;
  }
  h = before;  // a block behind the last one there is goes nowhere
  write_staged_hidden<kHidden>(hidden, slots.data(), 0, kInputs, 2, 2, h.rows());
  for (int slot = 0; slot <= kFirstSlot + kInputs; ++slot) {
    EXPECT_EQ(std::memcmp(h.view(slot).q, TileRows(before).view(slot).q, 64), 0) << slot;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WideBlockBodyTest,
                         testing::Values(Type::q4_k, Type::q5_k, Type::q6_k, Type::q8_0),
                         [](const auto& test) { return std::string(type_name(test.param)); });

}  // namespace
}  // namespace sluice::backend::cuda
