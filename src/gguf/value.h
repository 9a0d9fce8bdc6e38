// A metadata value of a GGUF file: a number, a bool, a string, or an array of one of these. The
// width of an integer is kept, so that a file can be written back byte for byte.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/error.h"

namespace sluice::gguf {

// The values are the file's type ids.
enum class ValueType : uint32_t {
  u8 = 0,
  i8 = 1,
  u16 = 2,
  i16 = 3,
  u32 = 4,
  i32 = 5,
  f32 = 6,
  boolean = 7,
  string = 8,
  array = 9,
  u64 = 10,
  i64 = 11,
  f64 = 12,
};
constexpr uint32_t kValueTypes = 13;

// First the scalars in order of their ids, then the arrays of each in the same order: type_of() and
// element_type_of() rely on it.
using Value = std::variant<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, float, bool,
                           std::string, uint64_t, int64_t, double, std::vector<uint8_t>,
                           std::vector<int8_t>, std::vector<uint16_t>, std::vector<int16_t>,
                           std::vector<uint32_t>, std::vector<int32_t>, std::vector<float>,
                           std::vector<bool>, std::vector<std::string>, std::vector<uint64_t>,
                           std::vector<int64_t>, std::vector<double>>;

constexpr ValueType kScalarTypes[] = {ValueType::u8,  ValueType::i8,      ValueType::u16,
                                      ValueType::i16, ValueType::u32,     ValueType::i32,
                                      ValueType::f32, ValueType::boolean, ValueType::string,
                                      ValueType::u64, ValueType::i64,     ValueType::f64};
constexpr size_t kScalars = std::size(kScalarTypes);
static_assert(std::variant_size_v<Value> == 2 * kScalars);

// "u8", "string", "array", ...
constexpr std::string_view type_name(ValueType type) {
  constexpr std::string_view kNames[kValueTypes] = {"u8",  "i8",  "u16",  "i16",    "u32",
                                                    "i32", "f32", "bool", "string", "array",
                                                    "u64", "i64", "f64"};
  return kNames[static_cast<uint32_t>(type)];
}

inline bool is_array(const Value& value) { return value.index() >= kScalars; }

inline ValueType type_of(const Value& value) {
  return is_array(value) ? ValueType::array : kScalarTypes[value.index()];
}

// The type of an array's elements, or of a scalar itself.
inline ValueType element_type_of(const Value& value) {
  return kScalarTypes[value.index() % kScalars];
}

template <typename T>
inline constexpr bool kIsVector = false;
template <typename T>
inline constexpr bool kIsVector<std::vector<T>> = true;

// The elements of an array; 1 for a scalar.
inline size_t n_elems_of(const Value& value) {
  return std::visit(
      [](const auto& v) -> size_t {
        if constexpr (kIsVector<std::decay_t<decltype(v)>>) {
          return v.size();
        } else {
          return 1;
        }
      },
      value);
}

// For error texts: "u32", "array of 3 f32".
inline std::string describe_type(const Value& value) {
  const std::string_view name = type_name(element_type_of(value));
  return is_array(value) ? cat("array of ", n_elems_of(value), " ", name) : std::string(name);
}

}  // namespace sluice::gguf
