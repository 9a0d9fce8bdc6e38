// A sum that does not depend on how bytes are cut into pieces, and changes with every bit of them.
// SPDX-License-Identifier: Apache-2.0
#include "base/checksum.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice {
namespace {

std::vector<std::byte> some_bytes(size_t n) {
  std::vector<std::byte> bytes(n);
  for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::byte>(random_bits(1, i));
  return bytes;
}

uint64_t sum_of_pieces(std::span<const std::byte> bytes, size_t n_each) {
  Checksum sum;
  for (; bytes.size() > n_each; bytes = bytes.subspan(n_each)) sum.add(bytes.first(n_each));
  sum.add(bytes);
  return sum.value();
}

TEST(Checksum, IsTheSameHoweverTheBytesAreCut) {
  for (const size_t n : {0, 1, 31, 32, 33, 200}) {
    const std::vector<std::byte> bytes = some_bytes(n);
    for (size_t n_each = 1; n_each <= 70; ++n_each) {
      ASSERT_EQ(sum_of_pieces(bytes, n_each), sum_of_pieces(bytes, 1000)) << n << " by " << n_each;
    }
  }
}

TEST(Checksum, ChangesWithEveryBitAndWithTheLength) {
  std::vector<std::byte> bytes = some_bytes(77);
  const uint64_t whole = sum_of_pieces(bytes, 1000);
  for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
    ASSERT_NE(sum_of_pieces(bytes, 1000), whole) << "bit " << bit;
    bytes[bit / 8] ^= std::byte{1} << (bit % 8);
  }
  bytes.push_back(std::byte{0});
  EXPECT_NE(sum_of_pieces(bytes, 1000), whole);
}

}  // namespace
}  // namespace sluice
