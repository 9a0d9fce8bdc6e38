// A cursor over a file's bytes that cannot leave them: whatever a file says about a length is
// measured against what is left before anything is read or allocated. The bytes may be the first
// ones of a file that is longer: what lies behind them is NeedsMoreBytes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

#include "base/error.h"
#include "gguf/layout.h"

namespace sluice::gguf {

// The bytes at hand end within the directory, and the file goes on.
class NeedsMoreBytes : public Error {
 public:
  using Error::Error;
};

// Borrows the bytes and the path. `where` in the calls below says for error texts what is being
// read: "key 'general.name'".
class ByteReader {
 public:
  ByteReader(std::span<const std::byte> bytes, const std::string& path)
      : ByteReader(bytes, path, bytes.size()) {}
  // The first bytes of a file of `file_bytes`.
  ByteReader(std::span<const std::byte> bytes, const std::string& path, uint64_t file_bytes)
      : bytes_(bytes), path_(path), file_bytes_(file_bytes) {}

  uint64_t pos() const { return pos_; }
  uint64_t left() const { return file_bytes_ - pos_; }  // of the file

  template <typename... Args>
  [[noreturn]] void fail(const Args&... args) const {
    throw Error(Errc::bad_file, cat(path_, ": ", args...));
  }

  std::span<const std::byte> take(uint64_t n, std::string_view where) {
    require(n, where);
    pos_ += n;
    return bytes_.subspan(pos_ - n, n);
  }

  template <typename T>
  T read(std::string_view where) {
    static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
    T value;
    std::memcpy(&value, take(sizeof(T), where).data(), sizeof(T));
    return value;
  }

  // Lives as long as the bytes.
  std::string_view read_string(std::string_view where) {
    const auto n = read<uint64_t>(where);
    if (n > kMaxStringBytes) {
      fail("a string of ", n, " bytes in ", where, "; expected at most ", kMaxStringBytes);
    }
    const auto bytes = take(n, where);
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }

  void require(uint64_t n, std::string_view where) const {
    if (n > left()) {
      fail("the file ends after ", file_bytes_, " bytes, within ", where, "; expected ", n,
           " bytes from byte ", pos_, " on (an incomplete download?)");
    }
    if (n > bytes_.size() - pos_) {
      throw NeedsMoreBytes(Errc::bad_file, cat(path_, ": the first ", bytes_.size(),
                                               " bytes do not hold all of ", where));
    }
  }

 private:
  std::span<const std::byte> bytes_;
  const std::string& path_;
  uint64_t file_bytes_;
  uint64_t pos_ = 0;
};

}  // namespace sluice::gguf
