// See read_value.h.
// SPDX-License-Identifier: Apache-2.0
#include "gguf/read_value.h"

#include <algorithm>
#include <array>
#include <utility>

#include "gguf/layout.h"

namespace sluice::gguf {
namespace {

ValueType read_type(ByteReader& reader, const std::string& where) {
  const auto id = reader.read<int32_t>(where);
  if (id < 0 || static_cast<uint32_t>(id) >= kValueTypes) {
    reader.fail("value type ", id, " in ", where, "; expected 0 to ", kValueTypes - 1);
  }
  return static_cast<ValueType>(id);
}

template <typename T>
T read_scalar(ByteReader& reader, const std::string& where) {
  if constexpr (std::is_same_v<T, std::string>) {
    return std::string(reader.read_string(where));
  } else if constexpr (std::is_same_v<T, bool>) {
    return reader.read<uint8_t>(where) != 0;
  } else {
    return reader.read<T>(where);
  }
}

// The count and the elements; nothing is allocated before the bytes are known to be there.
template <typename T>
std::vector<T> read_elements(ByteReader& reader, const std::string& where) {
  constexpr uint64_t kMinBytes = std::is_same_v<T, std::string> ? sizeof(uint64_t) : sizeof(T);
  const auto count = reader.read<uint64_t>(where);
  if (count > kMaxArrayElems) {
    reader.fail("an array of ", count, " elements in ", where, "; expected at most ",
                kMaxArrayElems);
  }
  reader.require(count * kMinBytes, where);
  std::vector<T> out;
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
    out.reserve(count);
    for (uint64_t i = 0; i < count; ++i) out.push_back(read_scalar<T>(reader, where));
  } else {
    const auto bytes = reader.take(count * sizeof(T), where);
    out.resize(count);
    if (count > 0) std::memcpy(out.data(), bytes.data(), bytes.size());
  }
  return out;
}

// Reads what follows the type id (and, for an array, the element's) as alternative I of Value.
template <size_t I>
Value read_alternative(ByteReader& reader, const std::string& where) {
  using T = std::variant_alternative_t<I, Value>;
  if constexpr (kIsVector<T>) {
    return read_elements<typename T::value_type>(reader, where);
  } else {
    return read_scalar<T>(reader, where);
  }
}

template <size_t... I>
constexpr auto readers_of(std::index_sequence<I...>) {
  return std::array{&read_alternative<I>...};
}

}  // namespace

Value read_value(ByteReader& reader, const std::string& where) {
  constexpr auto kReaders = readers_of(std::make_index_sequence<std::variant_size_v<Value>>());
  const ValueType type = read_type(reader, where);
  const bool array = type == ValueType::array;
  const ValueType element = array ? read_type(reader, where) : type;
  if (element == ValueType::array) {
    reader.fail("an array of arrays in ", where,
                "; expected an array of numbers, bools or strings");
  }
  const auto scalar = std::ranges::find(kScalarTypes, element) - std::begin(kScalarTypes);
  return kReaders[static_cast<size_t>(scalar) + (array ? kScalars : 0)](reader, where);
}

}  // namespace sluice::gguf
