// Owner of a block of backend memory. Move-only; released in the destructor.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

namespace sluice::backend {

class Buffer {
 public:
  using Release = std::function<void(std::byte*)>;

  Buffer() = default;
  Buffer(std::byte* data, uint64_t n_bytes, Release release)
      : data_(data, std::move(release)), n_bytes_(n_bytes) {}

  std::byte* data() const { return data_.get(); }
  uint64_t n_bytes() const { return n_bytes_; }

  // The block seen as values of T.
  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_.get());
  }

 private:
  std::unique_ptr<std::byte, Release> data_;
  uint64_t n_bytes_ = 0;
};

// Who gives memory: a backend, or a block of its memory that was taken before.
using Allocate = std::function<Buffer(uint64_t n_bytes)>;

}  // namespace sluice::backend
