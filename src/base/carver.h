// Takes room from the front of a block of memory, one array after another, each on a line of its
// own; with no block it only counts what they would take.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/units.h"

namespace sluice {

class Carver {
 public:
  explicit Carver(std::byte* base) : base_(base) {}

  template <typename T>
  T* take(int64_t n) {
    std::byte* const at = base_ ? base_ + n_bytes_ : nullptr;
    n_bytes_ += round_up(static_cast<uint64_t>(n) * sizeof(T), kLine);
    return reinterpret_cast<T*>(at);
  }
  uint64_t n_bytes() const { return n_bytes_; }

 private:
  static constexpr uint64_t kLine = 64;

  std::byte* base_;
  uint64_t n_bytes_ = 0;
};

}  // namespace sluice
