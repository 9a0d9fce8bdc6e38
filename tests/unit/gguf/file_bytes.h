// Builds the bytes of a GGUF file by hand, right or wrong: the tests' own view of the format, which
// shares no code with the writer.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace sluice::gguf::test {

// The ids of the format, spelt out here once more on purpose.
enum Id : int32_t {
  kU8 = 0,
  kI8 = 1,
  kU16 = 2,
  kI16 = 3,
  kU32 = 4,
  kI32 = 5,
  kF32 = 6,
  kBool = 7,
  kString = 8,
  kArray = 9,
  kU64 = 10,
  kI64 = 11,
  kF64 = 12,
};
constexpr int32_t kTensorF32 = 0;
constexpr int32_t kTensorQ4_0 = 2;
constexpr int32_t kTensorQ4_K = 12;
constexpr int32_t kTensorIQ2_XXS = 16;
constexpr int32_t kTensorF64 = 28;

class FileBytes {
 public:
  FileBytes() = default;
  // The 24 bytes of a header.
  FileBytes(int64_t n_tensors, int64_t n_kv, uint32_t version = 3) {
    raw("GGUF").put(version).put(n_tensors).put(n_kv);
  }

  template <typename T>
  FileBytes& put(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value));
    return *this;
  }
  FileBytes& raw(std::string_view text) {
    bytes_ += text;
    return *this;
  }
  FileBytes& text(std::string_view text) { return put(uint64_t{text.size()}).raw(text); }

  // A key and its type id; the value is put after it.
  FileBytes& key(std::string_view name, int32_t type) { return text(name).put(type); }
  FileBytes& array(std::string_view name, int32_t element, uint64_t count) {
    return key(name, kArray).put(element).put(count);
  }
  FileBytes& tensor(std::string_view name, std::initializer_list<int64_t> shape, int32_t type,
                    uint64_t offset) {
    text(name).put(static_cast<uint32_t>(shape.size()));
    for (const int64_t dim : shape) put(dim);
    return put(type).put(offset);
  }

  FileBytes& zeros(size_t n) {
    bytes_.append(n, '\0');
    return *this;
  }
  FileBytes& pad(size_t alignment = 32) {
    while (bytes_.size() % alignment != 0) zeros(1);
    return *this;
  }

  const std::string& str() const { return bytes_; }

 private:
  std::string bytes_;
};

inline std::span<const std::byte> as_bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

// A small file with one of everything that the mutation tests should meet.
inline std::string small_valid_file() {
  FileBytes file(3, 5);
  file.key("general.name", kString).text("tiny");
  file.key("general.alignment", kU32).put(uint32_t{32});
  file.array("a.ints", kI16, 3).put(int16_t{-1}).put(int16_t{2}).put(int16_t{3});
  file.array("a.strings", kString, 2).text("one").text("two");
  file.key("a.flag", kBool).put(uint8_t{1});
  file.tensor("scalar", {}, kTensorF32, 0);
  file.tensor("vector", {5}, kTensorF32, 32);
  file.tensor("matrix", {32, 2}, kTensorQ4_0, 64);
  return file.pad().zeros(64 + 36).str();
}

}  // namespace sluice::gguf::test
