// Stripes: bytes only change their place, and stand where stripes.h says.
// SPDX-License-Identifier: Apache-2.0
#include "quant/stripes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/random.h"
#include "quant/blocks.h"

namespace sluice::quant {
namespace {

std::vector<std::byte> random_bytes(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random_bits(3, i));
  return bytes;
}

struct Woven8 {
  Woven8(Type type, int64_t n_cols)
      : stride(row_bytes(type, n_cols)), rows(random_bytes(8 * stride)), stripe(8 * stride) {
    weave_rows(type, n_cols, rows.data(), stripe.data());
  }

  // n bytes of row r from `at` on stand at `to` of the stripe.
  void expect_moved(size_t r, size_t at, size_t to, size_t n) const {
    EXPECT_EQ(std::memcmp(rows.data() + r * stride + at, stripe.data() + to, n), 0)
        << "row " << r << ", byte " << at;
  }

  size_t stride;
  std::vector<std::byte> rows, stripe;
};

TEST(Stripes, RowsComeBackAsTheyWere) {
  for (const Type type : supported_types()) {
    if (is_float(type)) continue;
    const int64_t block = type_info(type).block_elems;
    for (const int64_t n_cols : {block, int64_t{256}, int64_t{512}, 768 + block}) {
      const Woven8 woven(type, n_cols);
      for (size_t r = 0; r < 8; ++r) {
        std::vector<std::byte> row(woven.stride);
        unweave_row(type, n_cols, woven.stripe.data(), static_cast<int>(r), row.data());
        EXPECT_TRUE(
            std::ranges::equal(row, std::span(woven.rows).subspan(r * row.size(), row.size())))
            << type_name(type) << " [" << n_cols << "], row " << r;
      }
    }
  }
}

TEST(Stripes, WordsOfEightRowsStandSideBySide) {
  const Woven8 woven(Type::q4_k, 512);
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    for (size_t word = 0; word < 36; ++word) {
      for (size_t r = 0; r < 8; ++r) {
        const size_t at = chunk * sizeof(BlockQ4_K) + 4 * word;
        woven.expect_moved(r, at, 8 * (at - 4 * word) + 32 * word + 4 * r, 4);
      }
    }
  }
}

// A chunk of 8 blocks and one of 2.
TEST(Stripes, ScalesOfTwoBytesComeBeforeTheWordsOfTheirChunk) {
  const Woven8 woven(Type::q8_0, 320);
  for (size_t block = 0; block < 10; ++block) {
    const size_t in_chunk = block % 8, n_in_chunk = block < 8 ? 8 : 2;
    const size_t chunk_at = block < 8 ? 0 : 8 * 8 * sizeof(BlockQ8_0);
    const size_t words_at = chunk_at + n_in_chunk * 8 * 2;
    for (size_t r = 0; r < 8; ++r) {
      woven.expect_moved(r, block * sizeof(BlockQ8_0), chunk_at + (in_chunk * 8 + r) * 2, 2);
      for (size_t word = 0; word < 8; ++word) {
        woven.expect_moved(r, block * sizeof(BlockQ8_0) + 2 + 4 * word,
                           words_at + ((in_chunk * 8 + word) * 8 + r) * 4, 4);
      }
    }
  }
}

TEST(Stripes, BitsOfTheSameColumnsOfQ6KStandTogether) {
  const Woven8 woven(Type::q6_k, 256);
  for (size_t r = 0; r < 8; ++r) {
    woven.expect_moved(r, offsetof(BlockQ6_K, d), 2 * r, 2);
    for (size_t i = 0; i < 13; ++i) {
      const auto from = static_cast<size_t>(kWovenQ6K[i]);
      woven.expect_moved(r, 16 * from, 16 + 128 * i + 4 * r, 4);
    }
  }
}

}  // namespace
}  // namespace sluice::quant
