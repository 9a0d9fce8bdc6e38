// The block formulas of the GGUF spec, element by element, written from its text alone: bytes by
// offset, one expression per field, nothing shared with src/quant. Slow, and meant to be checked
// against the spec line by line. A value is d*s*w - dmin*m (block types: s = 1; + m for Q4_1).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "quant/type.h"

namespace sluice::quant {

// f16 by its definition, in double.
inline double spec_half(const uint8_t* at) {
  const int bits = at[0] | at[1] << 8;
  const int exponent = (bits >> 10) & 31;
  const int mantissa = bits & 1023;
  const double sign = (bits & 0x8000) != 0 ? -1.0 : 1.0;
  if (exponent == 31) return mantissa != 0 ? NAN : sign * INFINITY;
  if (exponent == 0) return sign * std::ldexp(mantissa, -24);
  return sign * std::ldexp(1024 + mantissa, exponent - 25);
}

struct SpecElement {
  int w = 0;        // the integer weight of the contract
  int s = 1;        // integer scale of its group
  int m = 0;        // integer minimum of its group
  double d = 0;     // block or super-block scale
  double dmin = 0;  // super-block scale of minima; for Q4_1 and Q5_1 the minimum itself

  double value(bool adds_min) const { return d * s * w + (adds_min ? dmin : -(dmin * m)); }
};

inline bool spec_adds_min(Type type) { return type == Type::q4_1 || type == Type::q5_1; }

// Scale and minimum of sub-block j of Q4_K and Q5_K; S: their 12 bytes.
inline void spec_scale_min(const uint8_t* S, int j, SpecElement& e) {
  if (j < 4) {
    e.s = S[j] & 63;
    e.m = S[j + 4] & 63;
  } else {
    e.s = (S[j + 4] & 15) | (S[j - 4] >> 6) << 4;
    e.m = (S[j + 4] >> 4) | (S[j] >> 6) << 4;
  }
}

inline SpecElement spec_block_32(Type type, const uint8_t* x, int i) {
  constexpr int T[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  constexpr int F[] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
  const auto nibble = [&](int qs) { return (x[qs + i % 16] >> 4 * (i / 16)) & 15; };
  const auto fifth = [&](int qh) { return ((x[qh + i / 8] >> i % 8) & 1) << 4; };
  SpecElement e;
  e.d = spec_half(x);
  if (type == Type::q4_0) e.w = nibble(2) - 8;
  if (type == Type::q4_1) e.w = nibble(4), e.dmin = spec_half(x + 2);
  if (type == Type::q5_0) e.w = (nibble(6) | fifth(2)) - 16;
  if (type == Type::q5_1) e.w = nibble(8) | fifth(4), e.dmin = spec_half(x + 2);
  if (type == Type::q8_0) e.w = x[2 + i] < 128 ? x[2 + i] : x[2 + i] - 256;
  if (type == Type::iq4_nl) e.w = T[nibble(2)];
  if (type == Type::mxfp4) e.w = F[nibble(1)], e.d = std::ldexp(1.0, x[0] - 128);
  return e;
}

inline SpecElement spec_super_block(Type type, const uint8_t* x, int i) {
  constexpr int T[] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};
  SpecElement e;
  if (type == Type::q2_k) {
    const int s = x[i / 16];
    e.w = (x[16 + 32 * (i / 128) + i % 32] >> 2 * ((i % 128) / 32)) & 3;
    e.s = s & 15, e.m = s >> 4, e.d = spec_half(x + 80), e.dmin = spec_half(x + 82);
  } else if (type == Type::q3_k) {
    const uint8_t* S = x + 96;
    const int j = i / 16;
    const int lo = j < 8 ? S[j] & 15 : S[j - 8] >> 4;
    const int hi = (S[8 + j % 4] >> 2 * (j / 4)) & 3;
    const int q = (x[32 + 32 * (i / 128) + i % 32] >> 2 * ((i % 128) / 32)) & 3;
    const int h = (x[i % 32] >> (i / 32)) & 1;
    e.w = q + 4 * h - 4, e.s = (lo | hi << 4) - 32, e.d = spec_half(x + 108);
  } else if (type == Type::q4_k || type == Type::q5_k) {
    const int j = i / 32;
    const int qs = type == Type::q4_k ? 16 : 48;
    e.w = (x[qs + 32 * (i / 64) + i % 32] >> 4 * (j % 2)) & 15;
    if (type == Type::q5_k) e.w |= ((x[16 + i % 32] >> j) & 1) << 4;
    spec_scale_min(x + 4, j, e);
    e.d = spec_half(x), e.dmin = spec_half(x + 2);
  } else if (type == Type::q6_k) {
    const int h = i / 128, r = i % 128, g = r / 32, l = r % 32;
    const int lo = (x[64 * h + 32 * (g % 2) + l] >> 4 * (g / 2)) & 15;
    const int hi = (x[128 + 32 * h + l] >> 2 * g) & 3;
    const int s = x[192 + i / 16];
    e.w = (lo | hi << 4) - 32, e.s = s < 128 ? s : s - 256, e.d = spec_half(x + 208);
  } else if (type == Type::iq4_xs) {
    const int ib = i / 32, r = i % 32;
    const int scales_h = x[2] | x[3] << 8;
    const int ls = ((x[4 + ib / 2] >> 4 * (ib % 2)) & 15) | ((scales_h >> 2 * ib) & 3) << 4;
    e.w = T[(x[8 + 16 * ib + r % 16] >> 4 * (r / 16)) & 15], e.s = ls - 32, e.d = spec_half(x);
  }
  return e;
}

// Element k of a row of a quantised type.
inline SpecElement spec_element(Type type, const std::byte* row, int64_t k) {
  const TypeInfo& info = type_info(type);
  const auto* block =
      reinterpret_cast<const uint8_t*>(row) + k / info.block_elems * info.block_bytes;
  const int i = static_cast<int>(k % info.block_elems);
  return info.block_elems == 32 ? spec_block_32(type, block, i) : spec_super_block(type, block, i);
}

// Offsets of the f16 fields of a block; -1: none.
struct HalfFields {
  int first, second;
};
inline HalfFields spec_half_fields(Type type) {
  switch (type) {
    case Type::q4_1:
    case Type::q5_1:
    case Type::q4_k:
    case Type::q5_k:
      return {0, 2};
    case Type::q2_k:
      return {80, 82};
    case Type::q3_k:
      return {108, -1};
    case Type::q6_k:
      return {208, -1};
    case Type::mxfp4:
      return {-1, -1};
    default:
      return {0, -1};
  }
}

// A row of random bytes in which every bit pattern of quants and integer scales may occur, and f16
// fields are of either sign and between 2^-10 and 2^-3 in size (MXFP4: 2^-14 .. 2^2).
inline std::vector<std::byte> random_bytes_row(Type type, int64_t n, uint64_t seed) {
  const TypeInfo& info = type_info(type);
  std::vector<std::byte> row(row_bytes(type, n));
  for (size_t k = 0; k < row.size(); ++k) row[k] = static_cast<std::byte>(random_bits(seed, k));
  for (size_t at = 0; at < row.size(); at += info.block_bytes) {
    const auto tame = [&](int offset) {
      if (offset < 0) return;
      const uint64_t bits = random_bits(seed ^ 0x5ca1e, at + static_cast<uint64_t>(offset));
      const uint64_t half = (bits & 0x83ff) | (5 + (bits >> 16) % 8) << 10;
      row[at + static_cast<size_t>(offset)] = static_cast<std::byte>(half);
      row[at + static_cast<size_t>(offset) + 1] = static_cast<std::byte>(half >> 8);
    };
    tame(spec_half_fields(type).first);
    tame(spec_half_fields(type).second);
    if (type == Type::mxfp4) row[at] = static_cast<std::byte>(114 + random_bits(seed, at) % 17);
  }
  return row;
}

inline std::vector<Type> quantised_types() {
  std::vector<Type> types;
  for (const Type type : supported_types()) {
    if (!is_float(type)) types.push_back(type);
  }
  return types;
}

}  // namespace sluice::quant
