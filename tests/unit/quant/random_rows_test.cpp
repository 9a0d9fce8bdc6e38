// Random blocks: valid, with the wanted moments, and a pure function of seed and index.
// SPDX-License-Identifier: Apache-2.0
#include "quant/random_rows.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>
#include <vector>

#include "quant/decode.h"
#include "quant/validate.h"
#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

std::vector<std::byte> blocks(Type type, uint64_t seed, uint64_t first, int64_t n_blocks,
                              float std) {
  std::vector<std::byte> out(static_cast<size_t>(n_blocks) * type_info(type).block_bytes);
  random_row_blocks(type, seed, first, n_blocks, std, out.data());
  return out;
}

// 2^18 values. Super-blocks share scales among 256, so the sample of scales is small: 1024 blocks
// with factors spread by 15 % put the deviation's own error near 1 %.
TEST(RandomRows, MeanIsZeroAndDeviationAsWantedForEveryType) {
  const int64_t n = 1 << 18;
  for (const Type type : supported_types()) {
    for (const float std : {1e-3f, 0.02f, 0.0305f, 1.0f}) {
      const int64_t n_blocks = n / type_info(type).block_elems;
      std::vector<float> x(n);
      decode_row(type, blocks(type, 42, 1000, n_blocks, std).data(), x);
      double sum = 0, squares = 0;
      for (const float v : x) sum += v, squares += static_cast<double>(v) * v;
      const double got = std::sqrt(squares / n);
      EXPECT_NEAR(got / std, 1.0, 0.03) << type_name(type) << " wanted " << std << " got " << got;
      EXPECT_NEAR(sum / n / std, 0.0, 0.03) << type_name(type) << " std " << std;
    }
  }
}

TEST(RandomRows, BlocksAreValidAndTheirScalesNotZero) {
  for (const Type type : supported_types()) {
    for (const float std : {1e-3f, 1.0f, 100.0f}) {
      const std::vector<std::byte> data = blocks(type, 7, 0, 2000, std);
      EXPECT_EQ(first_bad_block(type, data.data(), 2000), -1) << type_name(type) << " std " << std;
      if (is_float(type)) continue;
      for (int64_t b = 0; b < 2000; ++b) {
        const SpecElement e = spec_element(type, data.data(), b * type_info(type).block_elems);
        ASSERT_NE(e.d, 0.0) << type_name(type) << " block " << b << " std " << std;
      }
    }
  }
}

TEST(RandomRows, ScalesDifferFromBlockToBlockAndGroupToGroup) {
  for (const Type type : quantised_types()) {
    const std::vector<std::byte> data = blocks(type, 7, 0, 64, 0.02f);
    std::set<double> scales, mins;
    std::set<int> group_scales;
    for (int64_t k = 0; k < 64 * type_info(type).block_elems; k += 16) {
      const SpecElement e = spec_element(type, data.data(), k);
      scales.insert(e.d), mins.insert(e.dmin), group_scales.insert(e.s);
    }
    EXPECT_GE(scales.size(), type == Type::mxfp4 ? 2u : 20u) << type_name(type);
    const HalfFields fields = spec_half_fields(type);
    EXPECT_EQ(mins.size() >= 20, fields.second >= 0) << type_name(type);
    EXPECT_GE(group_scales.size(), type_info(type).block_elems == 32 ? 1u : 8u) << type_name(type);
  }
}

TEST(RandomRows, AnyRangeOfBlocksIsTheSameWhoeverMakesIt) {
  for (const Type type : supported_types()) {
    const std::vector<std::byte> whole = blocks(type, 9, 0, 16, 0.5f);
    std::vector<std::byte> parts = blocks(type, 9, 0, 8, 0.5f);
    const std::vector<std::byte> second = blocks(type, 9, 8, 8, 0.5f);
    parts.insert(parts.end(), second.begin(), second.end());
    EXPECT_EQ(parts, whole) << type_name(type);
    EXPECT_NE(blocks(type, 10, 0, 16, 0.5f), whole) << type_name(type);
    EXPECT_NE(blocks(type, 9, 0, 8, 0.5f), second) << type_name(type);
  }
}

TEST(RandomRows, NothingIsWrittenBehindTheLastBlock) {
  for (const Type type : supported_types()) {
    const size_t bytes = 3 * type_info(type).block_bytes;
    std::vector<std::byte> data(bytes + 8, std::byte{0xa5});
    random_row_blocks(type, 1, 5, 3, 1.0f, data.data());
    for (size_t k = bytes; k < data.size(); ++k)
      EXPECT_EQ(data[k], std::byte{0xa5}) << type_name(type);
  }
}

}  // namespace
}  // namespace sluice::quant
