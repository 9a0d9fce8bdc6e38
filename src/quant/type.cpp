// See type.h.
// SPDX-License-Identifier: Apache-2.0
#include "quant/type.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "base/check.h"

namespace sluice::quant {
namespace {

constexpr TypeInfo kTypes[] = {
    {0, "F32", 1, 4, true},          {1, "F16", 1, 2, true},
    {2, "Q4_0", 32, 18, true},       {3, "Q4_1", 32, 20, true},
    {6, "Q5_0", 32, 22, true},       {7, "Q5_1", 32, 24, true},
    {8, "Q8_0", 32, 34, true},       {9, "Q8_1", 32, 36, false},
    {10, "Q2_K", 256, 84, true},     {11, "Q3_K", 256, 110, true},
    {12, "Q4_K", 256, 144, true},    {13, "Q5_K", 256, 176, true},
    {14, "Q6_K", 256, 210, true},    {15, "Q8_K", 256, 292, false},
    {16, "IQ2_XXS", 256, 66, false}, {17, "IQ2_XS", 256, 74, false},
    {18, "IQ3_XXS", 256, 98, false}, {19, "IQ1_S", 256, 50, false},
    {20, "IQ4_NL", 32, 18, true},    {21, "IQ3_S", 256, 110, false},
    {22, "IQ2_S", 256, 82, false},   {23, "IQ4_XS", 256, 136, true},
    {24, "I8", 1, 1, false},         {25, "I16", 1, 2, false},
    {26, "I32", 1, 4, false},        {27, "I64", 1, 8, false},
    {28, "F64", 1, 8, false},        {29, "IQ1_M", 256, 56, false},
    {30, "BF16", 1, 2, true},        {34, "TQ1_0", 256, 54, false},
    {35, "TQ2_0", 256, 66, false},   {39, "MXFP4", 32, 17, true},
    {40, "NVFP4", 64, 36, false},    {41, "Q1_0", 128, 18, false},
    {42, "Q2_0", 64, 18, false},
};

constexpr std::array kSupported = {
    Type::f32,    Type::f16,    Type::q4_0, Type::q4_1,  Type::q5_0, Type::q5_1,
    Type::q8_0,   Type::q2_k,   Type::q3_k, Type::q4_k,  Type::q5_k, Type::q6_k,
    Type::iq4_nl, Type::iq4_xs, Type::bf16, Type::mxfp4,
};

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(
      a, b, [](unsigned char x, unsigned char y) { return std::toupper(x) == std::toupper(y); });
}

}  // namespace

const TypeInfo* find_type_info(uint32_t id) {
  const auto* found = std::ranges::find(kTypes, id, &TypeInfo::id);
  return found == std::end(kTypes) ? nullptr : found;
}

const TypeInfo& type_info(Type type) {
  const TypeInfo* info = find_type_info(static_cast<uint32_t>(type));
  CHECK(info != nullptr);
  return *info;
}

std::optional<Type> parse_type(std::string_view name) {
  for (const Type type : kSupported) {
    if (equal_ignoring_case(type_name(type), name)) return type;
  }
  return std::nullopt;
}

std::span<const Type> supported_types() { return kSupported; }

uint64_t row_bytes(Type type, int64_t n) {
  const TypeInfo& info = type_info(type);
  CHECK(n >= 0 && n % info.block_elems == 0);
  return static_cast<uint64_t>(n) / info.block_elems * info.block_bytes;
}

}  // namespace sluice::quant
