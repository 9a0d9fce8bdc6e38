// The block layouts of GGUF's quantised types as structs of bytes, and the bit puzzles inside them.
// All members are bytes, so every struct has alignment 1 and may lie anywhere in a file: a row is
// only as aligned as row_bytes makes it. Integers are little endian.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "quant/half.h"

namespace sluice::quant {

constexpr int kBlock = 32;        // elements that share one activation scale
constexpr int kSuperBlock = 256;  // elements of a K-quant block, and of a chunk of the contract

struct StoredHalf {
  uint8_t bytes[2];

  uint16_t bits() const { return static_cast<uint16_t>(bytes[0] | bytes[1] << 8); }
  float value() const { return f16_to_f32(bits()); }
  void set_bits(uint16_t bits) {
    bytes[0] = static_cast<uint8_t>(bits);
    bytes[1] = static_cast<uint8_t>(bits >> 8);
  }
};

// Nibbles of 32-blocks: byte i holds element i below and element i + 16 above.

// x = d*(q-8)
struct BlockQ4_0 {
  StoredHalf d;
  uint8_t qs[16];
};
// x = d*q + m
struct BlockQ4_1 {
  StoredHalf d, m;
  uint8_t qs[16];
};
// x = d*(q-16); bit i of qh is bit 4 of element i
struct BlockQ5_0 {
  StoredHalf d;
  uint8_t qh[4];
  uint8_t qs[16];
};
// x = d*q + m
struct BlockQ5_1 {
  StoredHalf d, m;
  uint8_t qh[4];
  uint8_t qs[16];
};
// x = d*q
struct BlockQ8_0 {
  StoredHalf d;
  int8_t qs[32];
};
// x = d*T[q], T = kIq4Values
struct BlockIQ4_NL {
  StoredHalf d;
  uint8_t qs[16];
};
// x = 2^(e-128) * F[q], F = kMxfp4Values
struct BlockMXFP4 {
  uint8_t e;
  uint8_t qs[16];
};

// In super-blocks a byte holds bits of elements 32 or 64 apart; the formulas stand in unpack.cpp.

// x = d*(s&15)*q - dmin*(s>>4), one s per 16
struct BlockQ2_K {
  uint8_t scales[16];
  uint8_t qs[64];
  StoredHalf d, dmin;
};
// x = d*sc*(q + 4h - 4), one sc per 16
struct BlockQ3_K {
  uint8_t hmask[32];
  uint8_t qs[64];
  uint8_t scales[12];
  StoredHalf d;
};
// x = d*sc*q - dmin*mn, one (sc, mn) per 32
struct BlockQ4_K {
  StoredHalf d, dmin;
  uint8_t scales[12];
  uint8_t qs[128];
};
// x = d*sc*q - dmin*mn, one (sc, mn) per 32
struct BlockQ5_K {
  StoredHalf d, dmin;
  uint8_t scales[12];
  uint8_t qh[32];
  uint8_t qs[128];
};
// x = d*sc*(q-32), one sc per 16
struct BlockQ6_K {
  uint8_t ql[128];
  uint8_t qh[64];
  int8_t scales[16];
  StoredHalf d;
};
// x = d*(ls-32)*T[q], one ls per 32
struct BlockIQ4_XS {
  StoredHalf d;
  uint8_t scales_h[2];
  uint8_t scales_l[4];
  uint8_t qs[128];
};

static_assert(sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24);
static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockIQ4_NL) == 18 && sizeof(BlockMXFP4) == 17);
static_assert(sizeof(BlockQ2_K) == 84 && sizeof(BlockQ3_K) == 110 && sizeof(BlockQ4_K) == 144);
static_assert(sizeof(BlockQ5_K) == 176 && sizeof(BlockQ6_K) == 210 && sizeof(BlockIQ4_XS) == 136);
static_assert(alignof(BlockQ4_K) == 1 && alignof(BlockQ6_K) == 1 && alignof(BlockIQ4_XS) == 1);

constexpr std::array<int8_t, 16> kIq4Values = {-127, -104, -83, -65, -49, -35, -22, -10,
                                               1,    13,   25,  38,  53,  69,  89,  113};

// Twice the E2M1 values, so that they are integers; e8m0_to_f32 holds the other half.
constexpr std::array<int8_t, 16> kMxfp4Values = {0, 1,  2,  3,  4,  6,  8,  12,
                                                 0, -1, -2, -3, -4, -6, -8, -12};

// 2^(e-128). e = 0 and 1 are subnormal; e = 255 is 2^127 here and refused by validate.h.
constexpr float e8m0_to_f32(uint8_t e) {
  const uint32_t bits = e >= 2 ? static_cast<uint32_t>(e - 1) << 23 : 0x00200000u << e;
  return std::bit_cast<float>(bits);
}

// The eight 6-bit scales and minima of Q4_K and Q5_K, in 12 bytes: the lower four of each have the
// lower 6 bits of bytes 0..3 and 4..7; of the upper four, the low nibbles share bytes 8..11 (scale
// below, minimum above), and the upper two bits sit on top of bytes 0..3 and 4..7.
struct ScalesAndMins {
  uint8_t scale[8];
  uint8_t min[8];
};

// Four bytes at a time: no shift below carries a wanted bit from one byte into another.
inline ScalesAndMins unpack_scales_q4_k(const uint8_t (&packed)[12]) {
  uint32_t in[3];
  std::memcpy(in, packed, 12);
  const uint32_t scale[2] = {in[0] & 0x3f3f3f3fu,
                             (in[2] & 0x0f0f0f0fu) | (in[0] >> 2 & 0x30303030u)};
  const uint32_t min[2] = {in[1] & 0x3f3f3f3fu,
                           (in[2] >> 4 & 0x0f0f0f0fu) | (in[1] >> 2 & 0x30303030u)};
  ScalesAndMins out;
  std::memcpy(out.scale, scale, 8);
  std::memcpy(out.min, min, 8);
  return out;
}

inline void pack_scales_q4_k(const ScalesAndMins& in, uint8_t (&packed)[12]) {
  for (int j = 0; j < 4; ++j) {
    packed[j] = static_cast<uint8_t>(in.scale[j] | (in.scale[j + 4] >> 4) << 6);
    packed[j + 4] = static_cast<uint8_t>(in.min[j] | (in.min[j + 4] >> 4) << 6);
    packed[j + 8] = static_cast<uint8_t>((in.scale[j + 4] & 15) | (in.min[j + 4] & 15) << 4);
  }
}

// Scale j = 0..15 of Q3_K, -32..31: low nibbles in bytes 0..7 (j and j+8 share a byte), upper two
// bits in bytes 8..11 (j, j+4, j+8, j+12 share a byte).
inline int unpack_scale_q3_k(const uint8_t (&packed)[12], int j) {
  const int low = j < 8 ? packed[j] & 15 : packed[j - 8] >> 4;
  const int high = (packed[8 + j % 4] >> 2 * (j / 4)) & 3;
  return (low | high << 4) - 32;
}

// Scale ib = 0..7 of IQ4_XS, -32..31: nibbles in scales_l, upper two bits in scales_h.
inline int unpack_scale_iq4_xs(const BlockIQ4_XS& block, int ib) {
  const int low = (block.scales_l[ib / 2] >> 4 * (ib % 2)) & 15;
  const int high = (block.scales_h[ib / 4] >> 2 * (ib % 4)) & 3;
  return (low | high << 4) - 32;
}

}  // namespace sluice::quant
