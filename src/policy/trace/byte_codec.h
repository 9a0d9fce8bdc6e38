// Little-endian numbers to and from bytes, for the formats of this folder.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace sluice::policy {

static_assert(std::endian::native == std::endian::little, "the formats are stored as they are");

template <typename T>
void put(std::vector<std::byte>& out, T value) {
  static_assert(std::is_arithmetic_v<T>);
  const size_t at = out.size();
  out.resize(at + sizeof(T));
  std::memcpy(out.data() + at, &value, sizeof(T));
}

inline void put_bytes(std::vector<std::byte>& out, const void* data, size_t n) {
  const size_t at = out.size();
  out.resize(at + n);
  if (n > 0) std::memcpy(out.data() + at, data, n);
}

// The caller has made sure that the bytes are there.
template <typename T>
T take(std::span<const std::byte> bytes, size_t& pos) {
  T value;
  std::memcpy(&value, bytes.data() + pos, sizeof(T));
  pos += sizeof(T);
  return value;
}

}  // namespace sluice::policy
