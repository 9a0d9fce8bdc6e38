// first_bad_block finds what was planted, and nothing else.
// SPDX-License-Identifier: Apache-2.0
#include "quant/validate.h"

#include <gtest/gtest.h>

#include <cstring>

#include "unit/quant/spec_walk.h"

namespace sluice::quant {
namespace {

constexpr int64_t kBlocks = 40;

std::vector<std::byte> good_blocks(Type type) {
  return random_bytes_row(type, kBlocks * type_info(type).block_elems, 5);
}

void plant_half(std::vector<std::byte>& row, Type type, int64_t block, int offset, uint16_t bits) {
  const auto at =
      static_cast<size_t>(block) * type_info(type).block_bytes + static_cast<size_t>(offset);
  std::memcpy(row.data() + at, &bits, 2);
}

TEST(Validate, GoodBlocksHaveNoFault) {
  for (const Type type : quantised_types()) {
    EXPECT_EQ(first_bad_block(type, good_blocks(type).data(), kBlocks), -1) << type_name(type);
  }
}

TEST(Validate, AnyNonFiniteScaleFieldIsFound) {
  for (const Type type : quantised_types()) {
    const HalfFields fields = spec_half_fields(type);
    for (const int offset : {fields.first, fields.second}) {
      if (offset < 0) continue;
      for (const uint16_t bits : {0x7c00, 0xfc00, 0x7c01, 0x7fff, 0xfe00}) {
        for (const int64_t block : {int64_t{0}, int64_t{17}, kBlocks - 1}) {
          std::vector<std::byte> row = good_blocks(type);
          plant_half(row, type, block, offset, bits);
          EXPECT_EQ(first_bad_block(type, row.data(), kBlocks), block)
              << type_name(type) << " offset " << offset << " bits " << bits;
          EXPECT_EQ(first_bad_block(type, row.data(), block), -1) << "looked behind the end";
        }
      }
      std::vector<std::byte> row = good_blocks(type);
      plant_half(row, type, 17, offset, 0x7bff);  // the largest finite f16
      plant_half(row, type, 18, offset, 0x83ff);  // a subnormal
      EXPECT_EQ(first_bad_block(type, row.data(), kBlocks), -1) << type_name(type);
    }
  }
}

TEST(Validate, TheFirstOfTwoFaultsIsReported) {
  std::vector<std::byte> row = good_blocks(Type::q4_k);
  plant_half(row, Type::q4_k, 30, 0, 0x7c00);
  plant_half(row, Type::q4_k, 12, 2, 0x7e00);
  EXPECT_EQ(first_bad_block(Type::q4_k, row.data(), kBlocks), 12);
}

TEST(Validate, Mxfp4ExponentsAreBadOnlyAt255) {
  std::vector<std::byte> row = good_blocks(Type::mxfp4);
  row[17 * 9] = std::byte{254};
  row[17 * 10] = std::byte{0};
  EXPECT_EQ(first_bad_block(Type::mxfp4, row.data(), kBlocks), -1);
  row[17 * 11] = std::byte{255};
  EXPECT_EQ(first_bad_block(Type::mxfp4, row.data(), kBlocks), 11);
}

TEST(Validate, NonFiniteFloatsAreFoundWhereverTheyStand) {
  const int64_t n = 10000;  // several of the stretches that are scanned at once
  struct Planted {
    Type type;
    uint32_t inf, nan, largest;
  };
  for (const Planted& p : {Planted{Type::f32, 0xff800000u, 0x7f800001u, 0x7f7fffffu},
                           Planted{Type::f16, 0xfc00u, 0x7c01u, 0x7bffu},
                           Planted{Type::bf16, 0xff80u, 0x7f81u, 0x7f7fu}}) {
    const size_t bytes = type_info(p.type).block_bytes;
    for (const int64_t at : {int64_t{0}, int64_t{4095}, int64_t{4096}, int64_t{7777}, n - 1}) {
      for (const uint32_t bits : {p.inf, p.nan, p.largest}) {
        std::vector<std::byte> row(n * bytes);
        std::memcpy(row.data() + static_cast<size_t>(at) * bytes, &bits, bytes);
        const int64_t expected = bits == p.largest ? -1 : at;
        EXPECT_EQ(first_bad_block(p.type, row.data(), n), expected)
            << type_name(p.type) << " bits " << bits;
      }
    }
  }
}

// Of two in one stretch and of two in different ones; nothing behind the end is looked at.
TEST(Validate, TheFirstOfTwoFloatsIsReportedAndNoneBehindTheEnd) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    const size_t bytes = type_info(type).block_bytes;
    std::vector<std::byte> row(9000 * bytes);
    for (const size_t at : {4400, 4500, 8999}) {
      std::memset(row.data() + at * bytes, 0xff, bytes);  // NaN in all of them
    }
    EXPECT_EQ(first_bad_block(type, row.data(), 9000), 4400) << type_name(type);
    EXPECT_EQ(first_bad_block(type, row.data(), 4401), 4400) << type_name(type);
    EXPECT_EQ(first_bad_block(type, row.data(), 4400), -1) << type_name(type);
    EXPECT_EQ(first_bad_block(type, row.data() + 4501 * bytes, 9000 - 4501), 8999 - 4501);
    EXPECT_EQ(first_bad_block(type, row.data(), 0), -1) << type_name(type);
  }
}

}  // namespace
}  // namespace sluice::quant
