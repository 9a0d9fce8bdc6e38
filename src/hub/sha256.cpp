// See sha256.h. Names as in the standard.
// SPDX-License-Identifier: Apache-2.0
#include "hub/sha256.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace sluice::hub {
namespace {

constexpr std::array<uint32_t, 64> kK = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

uint32_t big_endian(const std::byte* p) {
  uint32_t value = 0;
  std::memcpy(&value, p, sizeof(value));
  return std::endian::native == std::endian::little ? __builtin_bswap32(value) : value;
}

}  // namespace

void Sha256::take_blocks(const std::byte* data, size_t n_blocks) {
  for (; n_blocks > 0; --n_blocks, data += kBlock) {
    std::array<uint32_t, 64> w;
    for (size_t t = 0; t < 16; ++t) w[t] = big_endian(data + 4 * t);
    for (size_t t = 16; t < 64; ++t) {
      const uint32_t x = w[t - 15], y = w[t - 2];
      const uint32_t s0 = std::rotr(x, 7) ^ std::rotr(x, 18) ^ (x >> 3);
      const uint32_t s1 = std::rotr(y, 17) ^ std::rotr(y, 19) ^ (y >> 10);
      w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (size_t t = 0; t < 64; ++t) {
      const uint32_t sum1 = std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25);
      const uint32_t t1 = h + sum1 + (g ^ (e & (f ^ g))) + kK[t] + w[t];
      const uint32_t sum0 = std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22);
      const uint32_t t2 = sum0 + ((a & b) | (c & (a | b)));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<uint32_t, 8> added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < 8; ++i) state_[i] += added[i];
  }
}

void Sha256::add(std::span<const std::byte> bytes) {
  n_bytes_ += bytes.size();
  if (n_rest_ > 0) {
    const size_t n = std::min(kBlock - n_rest_, bytes.size());
    std::copy_n(bytes.data(), n, rest_.data() + n_rest_);
    n_rest_ += n;
    bytes = bytes.subspan(n);
    if (n_rest_ < kBlock) return;
    take_blocks(rest_.data(), 1);
    n_rest_ = 0;
  }
  take_blocks(bytes.data(), bytes.size() / kBlock);
  bytes = bytes.subspan(bytes.size() / kBlock * kBlock);
  std::copy_n(bytes.data(), bytes.size(), rest_.data());
  n_rest_ = bytes.size();
}

std::string Sha256::hex() {
  // A one bit, zeros, and the length in bits as the last eight bytes of a block.
  const uint64_t n_bits = n_bytes_ * 8;
  std::array<std::byte, 2 * kBlock> tail = {std::byte{0x80}};
  const size_t n_zeros = (2 * kBlock - 1 - 8 - n_rest_) % kBlock;
  for (size_t i = 0; i < 8; ++i) {
    tail[1 + n_zeros + i] = static_cast<std::byte>(n_bits >> (56 - 8 * i));
  }
  add(std::span(tail).first(1 + n_zeros + 8));
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const uint32_t word : state_) {
    for (int shift = 28; shift >= 0; shift -= 4) out += kDigits[word >> shift & 15];
  }
  return out;
}

}  // namespace sluice::hub
