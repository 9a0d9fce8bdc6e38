// Norm and int8 of a row, and int8 rows as kernels stage them (backend/cuda/stage_row.h,
// stage_rows.h), compiled by g++ with a warp as 32 loops and a block as eight warps, one after the
// other between two barriers. The int8 blocks are quant/'s in every bit, and the norm's scale is
// within its bound of the exact one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "backend/cuda/stage_row.h"
#include "base/random.h"
#include "quant/activation.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kWarps = NormedRow::kWarps;
constexpr int kWidths[] = {32, 96, 128, 160, 256, 736, 768, 1024, 2048, 2880, 4096, 8192};
constexpr float kEps = 1e-6f;

struct Rows {
  Rows(int n_rows, int n_columns) : n_cols(n_columns) {
    for (size_t i = 0; i < static_cast<size_t>(n_rows) * static_cast<size_t>(n_cols); ++i) {
      const int exponent = static_cast<int>(i / 32 % 9) - 4;
      x.push_back(std::ldexp(random_signed(random_bits(3, i)), exponent));
    }
    for (size_t i = 0; i < static_cast<size_t>(n_cols); ++i) {
      weight.push_back(1.0f + 0.5f * random_signed(random_bits(4, i)));
    }
  }
  std::vector<float> row(int r) const {
    const auto first = x.begin() + static_cast<long>(r) * n_cols;
    return {first, first + n_cols};
  }

  int n_cols;
  std::vector<float> x, weight;
};

// [n_rows] staged rows, whose memory ends with the last; what nobody writes is 0x5a.
struct Staged {
  Staged(int n_rows, int n_cols)
      : n_chunks(row_shape(n_cols).n_chunks),
        bytes(static_cast<size_t>(n_rows * staged_row_bytes(n_chunks)), 0x5a) {}
  InputRow row(int r) const { return staged_row(bytes.data(), n_chunks, r); }

  int n_chunks;
  std::vector<uint8_t> bytes;
};

// The block's phases, with barriers between them. scale: what the row was multiplied with, where it
// is normalised.
Staged stage(const Rows& rows, int r, bool has_norm, float& scale) {
  Staged out(1, rows.n_cols);
  std::vector<float> squares(static_cast<size_t>((rows.n_cols + kSegment - 1) / kSegment));
  std::vector<NormedRow> warps;
  for (int w = 0; w < kWarps; ++w) {
    warps.emplace_back(rows.x.data(), RowNorm{has_norm ? rows.weight.data() : nullptr, kEps},
                       rows.n_cols, w);
    warps.back().choose(r);
  }
  for (NormedRow& warp : warps) warp.add_squares(squares.data());
  for (const NormedRow& warp : warps) warp.stage(squares.data(), out.bytes.data());
  scale = row_scale(squares.data(), rows.n_cols, kEps)[0];
  return out;
}

void expect_int8_of(const std::vector<float>& x, const InputRow& got) {
  std::vector<int8_t> q(x.size());
  std::vector<float> d(x.size() / 32), y(x.size() / 32);
  quant::quantize_activation(x, q.data(), d.data(), y.data());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_EQ(q[i], got.q[i / kChunk * StagedLoad::kChunkStride + i % kChunk]) << "column " << i;
  }
  for (size_t b = 0; b < d.size(); ++b) {
    ASSERT_EQ(std::bit_cast<uint32_t>(d[b]), std::bit_cast<uint32_t>(got.d[b])) << "block " << b;
    ASSERT_EQ(std::bit_cast<uint32_t>(y[b]), std::bit_cast<uint32_t>(got.y[b])) << "block " << b;
  }
}

TEST(StageBodyTest, RowsBecomeTheContractsInt8) {
  for (const int n_cols : kWidths) {
    const Rows rows(2, n_cols);
    for (int r = 0; r < 2; ++r) {
      SCOPED_TRACE(testing::Message() << n_cols << " columns, row " << r);
      float scale = 0.0f;
      const Staged got = stage(rows, r, false, scale);
      expect_int8_of(rows.row(r), got.row(0));
    }
  }
}

// A row's sum of squares passes 3 additions in a lane, 5 between lanes, at most 2 of segments and 5
// again, its scale 4 operations more: each adds 2^-24, half of it before the root.
TEST(StageBodyTest, NormedRowsAreTheContractsInt8OfTheNorm) {
  for (const int n_cols : kWidths) {
    const Rows rows(2, n_cols);
    for (int r = 0; r < 2; ++r) {
      SCOPED_TRACE(testing::Message() << n_cols << " columns, row " << r);
      float scale = 0.0f;
      const Staged got = stage(rows, r, true, scale);
      std::vector<float> x = rows.row(r);
      double squares = 0.0;
      for (const float v : x) squares += static_cast<double>(v) * v;
      const double exact = 1.0 / std::sqrt(squares / n_cols + static_cast<double>(kEps));
      ASSERT_NEAR(scale, exact, 16 * 0x1p-24 * exact);
      for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * scale * rows.weight[i];
      expect_int8_of(x, got.row(0));
    }
  }
}

// Rows that a kernel before quantised, several or one, some pieces at a time; memory ends with
// them.
TEST(StageBodyTest, Int8RowsAreCopiedWhole) {
  for (const int n_cols : kWidths) {
    const int n_chunks = row_shape(n_cols).n_chunks, n_rows = 3;
    std::vector<int8_t> q(static_cast<size_t>(n_rows * n_chunks * kChunk));
    std::vector<float> d(q.size() / 32), y(q.size() / 32);
    for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(random_bits(9, i));
    for (size_t i = 0; i < d.size(); ++i) d[i] = static_cast<float>(i), y[i] = -d[i];
    const Int8Rows all{q.data(), d.data(), y.data(), n_chunks};
    Staged got(n_rows, n_cols);
    for (int w = 0; w < kWarps; ++w) {
      copy_rows(all, n_rows, n_chunks, got.bytes.data(), w, kWarps,
                [](uint8_t* to, const void* from) { std::memcpy(to, from, 16); });
    }
    for (int r = 0; r < n_rows; ++r) {
      SCOPED_TRACE(testing::Message() << n_cols << " columns, row " << r);
      Staged one(1, n_cols);
      const Int8Rows from = all.from(r);
      for (int w = 0; w < kWarps; ++w) copy_row(from, n_chunks, one.bytes.data(), w, kWarps);
      ASSERT_EQ(0, std::memcmp(one.bytes.data(), got.row(r).q, one.bytes.size()));
      for (int i = 0; i < n_chunks * kChunk; ++i) {
        ASSERT_EQ(from.q[i], got.row(r).q[i / kChunk * StagedLoad::kChunkStride + i % kChunk]);
      }
      ASSERT_EQ(0, std::memcmp(from.d, got.row(r).d, static_cast<size_t>(n_chunks) * 32));
      ASSERT_EQ(0, std::memcmp(from.y, got.row(r).y, static_cast<size_t>(n_chunks) * 32));
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda
