// The tensor types of a GGUF file: their ids, names and block sizes. Reading a file needs all of
// them, so that an unsupported one can be named; computing needs those with `supported`.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace sluice::quant {

// The types sluice decodes and computes with; the values are the file's ids.
enum class Type : uint32_t {
  f32 = 0,
  f16 = 1,
  q4_0 = 2,
  q4_1 = 3,
  q5_0 = 6,
  q5_1 = 7,
  q8_0 = 8,
  q2_k = 10,
  q3_k = 11,
  q4_k = 12,
  q5_k = 13,
  q6_k = 14,
  iq4_nl = 20,
  iq4_xs = 23,
  bf16 = 30,
  mxfp4 = 39,
};

struct TypeInfo {
  uint32_t id;
  std::string_view name;  // as in GGUF tools: "Q4_K"
  uint32_t block_elems;
  uint32_t block_bytes;
  bool supported;
};

// All types with a known layout, by id; null for an id that was never used or was removed.
const TypeInfo* find_type_info(uint32_t id);

const TypeInfo& type_info(Type type);
inline std::string_view type_name(Type type) { return type_info(type).name; }

// By name, in any case: "q4_k" and "Q4_K". Only supported types.
std::optional<Type> parse_type(std::string_view name);

// Every supported type, in order of id.
std::span<const Type> supported_types();

// Plain numbers, one per element, as opposed to integers with block scales.
constexpr bool is_float(Type type) {
  return type == Type::f32 || type == Type::f16 || type == Type::bf16;
}

// Bytes of a row of n values; n must be a multiple of the block.
uint64_t row_bytes(Type type, int64_t n);

}  // namespace sluice::quant
