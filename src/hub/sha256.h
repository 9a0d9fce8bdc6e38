// SHA-256 (FIPS 180-4), in pieces. One thread hashes some 300 MB/s, more than most lines bring.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace sluice::hub {

class Sha256 {
 public:
  void add(std::span<const std::byte> bytes);
  // 64 hexadecimal digits. Nothing can be added after.
  std::string hex();

 private:
  static constexpr size_t kBlock = 64;
  void take_blocks(const std::byte* data, size_t n_blocks);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, kBlock> rest_ = {};
  size_t n_rest_ = 0;
  uint64_t n_bytes_ = 0;
};

}  // namespace sluice::hub
