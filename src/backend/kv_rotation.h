// The rotation of keys that are stored in 4 bits, and of the queries that meet them. A block of n
// values, n = 128 or the largest power of two that divides head_dim, becomes
//   y = H (s x) / sqrt(n)      H[i][j] = (-1)^popcount(i & j), s[j] = -1 where rotation_flips(j)
// which keeps dots as they are, so that scores need nothing more, and spreads a few large values
// over the block: one of them would take the 15 steps of its 32 values for itself. The signs are
// there because H alone makes one large value of many equal ones.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "quant/type.h"

namespace sluice::backend {

constexpr int kMaxRotationBlock = 128;

// Whether a cache of such keys holds them rotated.
constexpr bool rotates_keys(quant::Type k_type) { return k_type == quant::Type::q4_0; }

constexpr int rotation_block(int head_dim) {
  const int power = head_dim & -head_dim;
  return power < kMaxRotationBlock ? power : kMaxRotationBlock;
}

// By the first 128 bits of the fraction of pi, from the lowest of each word of 64 on.
constexpr bool rotation_flips(int j) {
  const uint64_t bits = j < 64 ? 0x243f6a8885a308d3 : 0x13198a2e03707344;
  return (bits >> (j % 64) & 1) != 0;
}

// In place. Sums and differences of neighbours first, then of those 2, 4, ... apart; the factor
// comes last. Every operation rounds once, so that another backend can have the same bits.
inline void rotate_head(std::span<float> head) {
  const int n = rotation_block(static_cast<int>(head.size()));
  const float factor = 1.0f / std::sqrt(static_cast<float>(n));
  for (float* x = head.data(); x < head.data() + head.size(); x += n) {
    for (int j = 0; j < n; ++j) x[j] = rotation_flips(j) ? -x[j] : x[j];
    for (int apart = 1; apart < n; apart *= 2) {
      for (int first = 0; first < n; first += 2 * apart) {
        for (int j = first; j < first + apart; ++j) {
          const float a = x[j], b = x[j + apart];
          x[j] = a + b;
          x[j + apart] = a - b;
        }
      }
    }
    for (int j = 0; j < n; ++j) x[j] *= factor;
  }
}

}  // namespace sluice::backend
