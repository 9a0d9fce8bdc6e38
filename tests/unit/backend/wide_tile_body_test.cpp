// A tile of a wide step (backend/cuda/wide_tile.h), compiled by g++ with a warp as 32 loops: the
// sums of eight warps' stripes against quant/, and hidden values where they are gate and up.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_tile.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "backend/cuda/stripe_dispatch.h"
#include "quant/dot.h"
#include "quant/random_rows.h"
#include "quant/stripes.h"
#include "quant/swiglu.h"
#include "unit/backend/wide_inputs.h"

namespace sluice::backend::cuda {
namespace {

class WideTileBodyTest : public testing::TestWithParam<Type> {
 protected:
  // Behind the last stripe is what no weight is, up to a whole chunk: kernels have room for one.
  void make_stripes(int n_cols) {
    row_bytes_ = quant::row_bytes(GetParam(), n_cols);
    rows_.resize(8 * kTileStripes * row_bytes_);
    stripes_.assign(rows_.size() + 8 * quant::row_bytes(GetParam(), kChunk), uint8_t{0xff});
    const auto n = static_cast<int64_t>(rows_.size() / quant::type_info(GetParam()).block_bytes);
    quant::random_row_blocks(GetParam(), 5, 0, n, 0.25f, rows_.data());
    for (size_t at = 0; at < rows_.size(); at += 8 * row_bytes_) {
      quant::weave_rows(GetParam(), n_cols, rows_.data() + at,
                        reinterpret_cast<std::byte*>(stripes_.data()) + at);
    }
  }
  float dot(int warp, int stripe, int row, int n_cols, const quant::ActivationView& in) const {
    const auto at = tile_count(8 * (2 * warp + stripe) + row);
    return quant::dot(GetParam(), rows_.data() + at * row_bytes_, n_cols, in);
  }

  // Inputs are rows 1, 3, 5, .. of `in`, as a kernel picks its own.
  std::vector<float> sums_of(TileRows& in, int n_inputs, int height) const {
    std::vector<float> sums(tile_count(kTileWarps * tile_sums(height)));
    alignas(16) float scales[kWarpScales];
    alignas(16) static uint8_t inputs[64 * kTileInputBytes];
    const RowShape shape = row_shape(in.n_cols);
    for (int c = 0; c < shape.n_chunks; ++c) {
      for (int i = 0; i < n_inputs * kTilePieces; ++i) {
        const int64_t at = int64_t{2 * (i / kTilePieces) + 1} * in.n_chunks + c;
        std::memcpy(inputs + kTileInputBytes * (i / kTilePieces) + 16 * (i % kTilePieces),
                    tile_piece(in.rows(), at, i % kTilePieces), 16);
      }
      with_stripe_type(GetParam(), [&]<Type type>() {
        for (int w = 0; w < kTileWarps; ++w) {
          const uint8_t* const first =
              stripes_.data() + tile_count(16 * w) * row_bytes_ + tile_count(chunk_offset<type>(c));
          const auto at = [&](size_t k) { return first + 8 * k * row_bytes_; };
          float* const own = sums.data() + w * tile_sums(height);
          add_tile_chunk<type>({at(0), at(1)}, blocks_of<type>(shape, c), inputs, n_inputs, scales,
                               own);
        }
      });
    }
    return sums;
  }

  size_t row_bytes_ = 0;
  std::vector<std::byte> rows_;
  std::vector<uint8_t> stripes_;
};

TEST_P(WideTileBodyTest, SumsAreThoseOfTheContract) {
  const int n_cols = quant::type_info(GetParam()).block_elems == 256 ? 512 : 352;
  make_stripes(n_cols);
  for (const int n_inputs : {1, 7, 8, 9, 17}) {
    const int height = 24;
    TileRows in(2 * n_inputs, n_cols, 11);
    const std::vector<float> sums = sums_of(in, n_inputs, height);
    for (int i = 0; i < 8 * kTileStripes * n_inputs; ++i) {
      const int k = i % n_inputs, row = i / n_inputs % 8, stripe = i / n_inputs / 8 % 2;
      const int warp = i / n_inputs / 16;
      const float want = dot(warp, stripe, row, n_cols, in.view(2 * k + 1));
      const float got = sums[tile_count(tile_sum_at(height, warp, stripe, row, k))];
      ASSERT_EQ(std::bit_cast<uint32_t>(want), std::bit_cast<uint32_t>(got))
          << n_inputs << " inputs, warp " << warp << ", stripe " << stripe << ", row " << row
          << ", input " << k << ": expected " << want << ", got " << got;
    }
  }
}

// Warps 4 .. 7 have gate's and up's rows of hidden values 32 .. 63.
TEST_P(WideTileBodyTest, HiddenValuesAreThoseOfTheContract) {
  const int n_cols = quant::type_info(GetParam()).block_elems == 256 ? 256 : 160;
  constexpr int kInputs = 3, kHeight = 8, kSlot = 2;
  make_stripes(n_cols);
  TileRows in(2 * kInputs, n_cols, 17), h(kSlot + 1, 64, 18);
  const std::vector<float> sums = sums_of(in, kInputs, kHeight);
  for (int k = 0; k < kInputs; ++k) {
    write_tile_hidden(sums.data(), kHeight, 4, k, h.rows(), kSlot, 1);
    std::vector<float> gate(32), up(32);
    for (int i = 0; i < 32; ++i) {
      gate[tile_count(i)] = dot(4 + i / 8, 0, i % 8, n_cols, in.view(2 * k + 1));
      up[tile_count(i)] = dot(4 + i / 8, 1, i % 8, n_cols, in.view(2 * k + 1));
    }
    quant::swiglu(gate, up, gate.data());
    int8_t q[32];
    float d = 0.0f, y = 0.0f;
    quant::quantize_activation(gate, q, &d, &y);
    const quant::ActivationView got = h.view(kSlot);
    EXPECT_EQ(std::memcmp(q, got.q + 32, 32), 0) << "input " << k;
    EXPECT_EQ(std::bit_cast<uint32_t>(d), std::bit_cast<uint32_t>(got.d[1])) << "input " << k;
    EXPECT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(got.y[1])) << "input " << k;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, WideTileBodyTest,
                         testing::Values(Type::q4_0, Type::q4_1, Type::q5_0, Type::q5_1, Type::q8_0,
                                         Type::q2_k, Type::q3_k, Type::q4_k, Type::q5_k, Type::q6_k,
                                         Type::iq4_nl, Type::iq4_xs, Type::mxfp4),
                         [](const auto& test) { return std::string(type_name(test.param)); });

}  // namespace
}  // namespace sluice::backend::cuda
