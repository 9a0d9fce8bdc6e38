// The type table against the spec's own table.
// SPDX-License-Identifier: Apache-2.0
#include "quant/type.h"

#include <gtest/gtest.h>

namespace sluice::quant {
namespace {

struct SpecRow {
  uint32_t id;
  const char* name;
  uint32_t elems, bytes;
};
constexpr SpecRow kSpec[] = {
    {0, "F32", 1, 4},       {1, "F16", 1, 2},       {30, "BF16", 1, 2},
    {2, "Q4_0", 32, 18},    {3, "Q4_1", 32, 20},    {6, "Q5_0", 32, 22},
    {7, "Q5_1", 32, 24},    {8, "Q8_0", 32, 34},    {10, "Q2_K", 256, 84},
    {11, "Q3_K", 256, 110}, {12, "Q4_K", 256, 144}, {13, "Q5_K", 256, 176},
    {14, "Q6_K", 256, 210}, {20, "IQ4_NL", 32, 18}, {23, "IQ4_XS", 256, 136},
    {39, "MXFP4", 32, 17},
};

TEST(Type, EverySupportedTypeHasTheBlockOfTheSpec) {
  EXPECT_EQ(supported_types().size(), std::size(kSpec));
  for (const SpecRow& row : kSpec) {
    const std::optional<Type> type = parse_type(row.name);
    ASSERT_TRUE(type.has_value()) << row.name;
    EXPECT_EQ(static_cast<uint32_t>(*type), row.id) << row.name;
    EXPECT_EQ(type_info(*type).block_elems, row.elems) << row.name;
    EXPECT_EQ(type_info(*type).block_bytes, row.bytes) << row.name;
    EXPECT_EQ(row_bytes(*type, 512), 512 / row.elems * row.bytes) << row.name;
  }
}

TEST(Type, NamesAreFoundInAnyCaseAndUnsupportedOnesAreNot) {
  EXPECT_EQ(parse_type("q4_k"), Type::q4_k);
  EXPECT_EQ(parse_type("iQ4_xS"), Type::iq4_xs);
  EXPECT_EQ(parse_type("IQ2_XXS"), std::nullopt);
  EXPECT_EQ(parse_type("Q4_"), std::nullopt);
}

TEST(Type, RemovedIdsAreUnknownAndUnsupportedOnesAreNamed) {
  for (const uint32_t id : {4u, 5u, 31u, 32u, 33u, 36u, 37u, 38u, 999u}) {
    EXPECT_EQ(find_type_info(id), nullptr) << id;
  }
  ASSERT_NE(find_type_info(16), nullptr);
  EXPECT_EQ(find_type_info(16)->name, "IQ2_XXS");
  EXPECT_FALSE(find_type_info(16)->supported);
}

}  // namespace
}  // namespace sluice::quant
