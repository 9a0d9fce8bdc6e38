// A sum of 64 bits over bytes that come in pieces, to find damage in files: any changed word
// changes it. Not for secrets. Four chains side by side, so that memory and not the multiplier is
// the limit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/random.h"

namespace sluice {

class Checksum {
 public:
  // However the bytes are cut into pieces, the sum is the same.
  void add(std::span<const std::byte> bytes) {
    n_bytes_ += bytes.size();
    if (n_left_ > 0) {
      const size_t n = std::min(bytes.size(), left_.size() - n_left_);
      std::memcpy(left_.data() + n_left_, bytes.data(), n);
      n_left_ += n;
      bytes = bytes.subspan(n);
      if (n_left_ < left_.size()) return;
      add_block(left_.data());
      n_left_ = 0;
    }
    for (; bytes.size() >= left_.size(); bytes = bytes.subspan(left_.size())) {
      add_block(bytes.data());
    }
    if (!bytes.empty()) std::memcpy(left_.data(), bytes.data(), bytes.size());
    n_left_ = bytes.size();
  }

  uint64_t value() const {
    Checksum whole = *this;
    std::memset(whole.left_.data() + n_left_, 0, left_.size() - n_left_);
    if (n_left_ > 0) whole.add_block(whole.left_.data());
    uint64_t sum = n_bytes_;
    for (const uint64_t chain : whole.chains_) sum = mix64(sum ^ chain);
    return sum;
  }

 private:
  static constexpr size_t kChains = 4;

  void add_block(const std::byte* bytes) {
    for (size_t i = 0; i < kChains; ++i) {
      uint64_t word;
      std::memcpy(&word, bytes + i * sizeof word, sizeof word);
      const uint64_t mixed = (chains_[i] ^ word) * 0x9e3779b97f4a7c15u;  // odd: a bijection
      chains_[i] = mixed ^ (mixed >> 29);
    }
  }

  std::array<uint64_t, kChains> chains_ = {1, 2, 3, 4};
  std::array<std::byte, kChains * sizeof(uint64_t)> left_{};  // of a block that is not full yet
  size_t n_left_ = 0;
  uint64_t n_bytes_ = 0;
};

}  // namespace sluice
