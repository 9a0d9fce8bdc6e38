// See encode_k.h. Scales are quantised twice (f16 times a small integer), so the best scale of each
// group is only a start. From there: pick the integer scales by trying neighbours, refit the f16
// scales to all 256 values by least squares, and repeat while the error falls.
// SPDX-License-Identifier: Apache-2.0
#include "quant/encode_k.h"

#include <algorithm>
#include <cmath>

#include "quant/float8.h"
#include "quant/round.h"
#include "quant/scale_search.h"

namespace sluice::quant {
namespace {

constexpr int kRounds = 3;
constexpr int kMaxScale = 63;  // 6 bits, Q4_K and Q5_K

// ---- Q4_K and Q5_K: x = d*sc*q - dmin*mn

struct AffineBlock {
  uint16_t d = 0;
  uint16_t dmin = 0;
  ScalesAndMins groups = {};
  float q[kSuperBlock] = {};
  float error = 0;
};

// The 6-bit integers next to value/unit.
struct Candidates {
  Candidates(float value, float unit) {
    const float ratio = unit > 0 ? std::min(value / unit, 64.0f) : 0.0f;
    first = std::max(round_half_even(ratio) - 1, 0);
    last = std::min(first + 2, kMaxScale);
  }
  int first, last;
};

// Settles group j: of the integer scales and minima around its best fit, those with the least error
// under the block's d and dmin.
template <int q_max>
void choose_group(const float* x, Affine fit, int j, AffineBlock& block) {
  const float d = f16_to_f32(block.d);
  const float dmin = f16_to_f32(block.dmin);
  const Candidates scales(fit.scale, d);
  const Candidates mins(fit.min, dmin);
  float least = INFINITY;
  float q[kBlock];
  for (int sc = scales.first; sc <= scales.last; ++sc) {
    for (int mn = mins.first; mn <= mins.last; ++mn) {
      const Affine exact = {d * static_cast<float>(sc), dmin * static_cast<float>(mn)};
      const float error = quantize_affine(x, kBlock, exact, q_max, q);
      if (!(error < least)) continue;
      least = error;
      block.groups.scale[j] = static_cast<uint8_t>(sc);
      block.groups.min[j] = static_cast<uint8_t>(mn);
      std::copy_n(q, kBlock, block.q + kBlock * j);
    }
  }
  block.error += least;
}

template <int q_max>
AffineBlock choose_groups(const float* x, const Affine (&fits)[8], float d, float dmin) {
  AffineBlock block;
  block.d = narrow_scale(d);
  block.dmin = narrow_scale(dmin);
  for (int j = 0; j < 8; ++j) choose_group<q_max>(x + kBlock * j, fits[j], j, block);
  return block;
}

// Least squares of x = d*a - dmin*b over the block, a = sc*q and b = mn:
//   | Saa  -Sab | |d   |   | Sxa |
//   | Sab  -Sbb | |dmin| = | Sxb |
void refit_block(const float* x, const AffineBlock& block, float& d, float& dmin) {
  float Saa = 0, Sab = 0, Sbb = 0, Sxa = 0, Sxb = 0;
  for (int j = 0; j < 8; ++j) {
    const auto sc = static_cast<float>(block.groups.scale[j]);
    const auto mn = static_cast<float>(block.groups.min[j]);
    const float* q = block.q + kBlock * j;
    const float* xj = x + kBlock * j;
    float Sq = 0, Sx = 0;
    for (int i = 0; i < kBlock; ++i) {
      Sq += q[i];
      Sx += xj[i];
    }
    Saa += sc * sc * sum_of_products(q, q, kBlock);
    Sab += sc * mn * Sq;
    Sbb += mn * mn * static_cast<float>(kBlock);
    Sxa += sc * sum_of_products(xj, q, kBlock);
    Sxb += mn * Sx;
  }
  const float determinant = Saa * Sbb - Sab * Sab;
  if (determinant > 1e-6f * Saa * Sbb) {
    d = (Sxa * Sbb - Sab * Sxb) / determinant;
    dmin = (Sxa * Sab - Saa * Sxb) / determinant;
  } else if (Saa > 0) {
    d = Sxa / Saa;
  }
}

template <int q_max>
AffineBlock search_affine(const float* x) {
  Affine fits[8];
  float largest_scale = 0, largest_min = 0;
  for (int j = 0; j < 8; ++j) {
    fits[j] = fit_affine(x + kBlock * j, kBlock, q_max);
    largest_scale = std::max(largest_scale, fits[j].scale);
    largest_min = std::max(largest_min, fits[j].min);
  }
  float d = largest_scale / kMaxScale;
  float dmin = largest_min / kMaxScale;
  AffineBlock best = choose_groups<q_max>(x, fits, d, dmin);
  for (int round = 1; round < kRounds; ++round) {
    d = f16_to_f32(best.d);
    dmin = f16_to_f32(best.dmin);
    refit_block(x, best, d, dmin);
    for (int j = 0; j < 8; ++j) fits[j] = refit_affine(x + kBlock * j, kBlock, best.q + kBlock * j);
    const AffineBlock next = choose_groups<q_max>(x, fits, d, std::max(dmin, 0.0f));
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

// Limited to what d*sc*q - dmin*mn can reach, so that squares stay finite.
template <int q_max>
AffineBlock quantize_affine_block(const float* x) {
  constexpr float most = kMaxF16 * kMaxScale;
  float limited[kSuperBlock];
  for (int i = 0; i < kSuperBlock; ++i) limited[i] = std::clamp(x[i], -most, most * q_max);
  return search_affine<q_max>(limited);
}

template <typename Block>
void store_affine(const AffineBlock& in, Block& out) {
  out.d.set_bits(in.d);
  out.dmin.set_bits(in.dmin);
  pack_scales_q4_k(in.groups, out.scales);
  for (int i = 0; i < 128; ++i) {
    const float* q = in.q + 64 * (i / 32) + i % 32;
    const int low = static_cast<int>(q[0]);
    const int high = static_cast<int>(q[32]);
    out.qs[i] = static_cast<uint8_t>((low & 15) | (high & 15) << 4);
  }
}

// ---- Q6_K: x = d*sc*q, sc of either sign

constexpr int kGroup = 16;

struct SymmetricBlock {
  uint16_t d = 0;
  int8_t scale[16] = {};
  float q[kSuperBlock] = {};
  float error = 0;
};

void choose_group(const float* x, float fit, int g, SymmetricBlock& block) {
  const float d = f16_to_f32(block.d);
  const int near = round_half_even(d > 0 ? std::clamp(fit / d, -128.0f, 127.0f) : 0.0f);
  float least = INFINITY;
  float q[kGroup];
  for (int sc = std::max(near - 1, -128); sc <= std::min(near + 1, 127); ++sc) {
    const float error = quantize_symmetric(x, kGroup, d * static_cast<float>(sc), 31, q);
    if (!(error < least)) continue;
    least = error;
    block.scale[g] = static_cast<int8_t>(sc);
    std::copy_n(q, kGroup, block.q + kGroup * g);
  }
  block.error += least;
}

SymmetricBlock choose_groups(const float* x, const float (&fits)[16], float d) {
  SymmetricBlock block;
  block.d = narrow_scale(d);
  for (int g = 0; g < 16; ++g) choose_group(x + kGroup * g, fits[g], g, block);
  return block;
}

// Least squares of x = d*a over the block, a = sc*q: d = Sxa / Saa; and of x = scale*q over each
// group.
float refit_block(const float* x, const SymmetricBlock& block, float (&fits)[16]) {
  float Sxa = 0, Saa = 0;
  for (int g = 0; g < 16; ++g) {
    const auto sc = static_cast<float>(block.scale[g]);
    const float* q = block.q + kGroup * g;
    const float Sxq = sum_of_products(x + kGroup * g, q, kGroup);
    const float Sqq = sum_of_products(q, q, kGroup);
    Sxa += sc * Sxq;
    Saa += sc * sc * Sqq;
    if (Sqq > 0) fits[g] = Sxq / Sqq;
  }
  return Saa > 0 ? Sxa / Saa : f16_to_f32(block.d);
}

SymmetricBlock search_symmetric(const float* x) {
  float fits[16];
  float largest = 0;
  for (int g = 0; g < 16; ++g) {
    fits[g] = fit_symmetric(x + kGroup * g, kGroup, 31);
    largest = std::max(largest, std::abs(fits[g]));
  }
  SymmetricBlock best = choose_groups(x, fits, largest / 127);
  for (int round = 1; round < kRounds; ++round) {
    const float d = refit_block(x, best, fits);
    const SymmetricBlock next = choose_groups(x, fits, d);
    if (!(next.error < best.error)) break;
    best = next;
  }
  return best;
}

}  // namespace

void encode_block(const float* x, BlockQ6_K& out) {
  constexpr float most = kMaxF16 * 127 * 31;
  float limited[kSuperBlock];
  for (int i = 0; i < kSuperBlock; ++i) limited[i] = std::clamp(x[i], -most, most);
  const SymmetricBlock found = search_symmetric(limited);
  uint8_t q[kSuperBlock];
  for (int i = 0; i < kSuperBlock; ++i) q[i] = static_cast<uint8_t>(found.q[i] + 32.0f);
  for (int i = 0; i < 128; ++i) {
    const uint8_t* low = q + 128 * (i / 64) + i % 64;
    out.ql[i] = static_cast<uint8_t>((low[0] & 15) | (low[64] & 15) << 4);
  }
  for (int i = 0; i < 64; ++i) {
    const uint8_t* quarter = q + 128 * (i / 32) + i % 32;
    out.qh[i] = static_cast<uint8_t>(quarter[0] >> 4 | (quarter[32] >> 4) << 2 |
                                     (quarter[64] >> 4) << 4 | (quarter[96] >> 4) << 6);
  }
  std::copy_n(found.scale, 16, out.scales);
  out.d.set_bits(found.d);
}

void encode_block(const float* x, BlockQ4_K& out) {
  store_affine(quantize_affine_block<15>(x), out);
}

void encode_block(const float* x, BlockQ5_K& out) {
  const AffineBlock found = quantize_affine_block<31>(x);
  store_affine(found, out);
  for (int l = 0; l < 32; ++l) {
    int bits = 0;
    for (int j = 0; j < 8; ++j) bits |= (static_cast<int>(found.q[32 * j + l]) >> 4) << j;
    out.qh[l] = static_cast<uint8_t>(bits);
  }
}

}  // namespace sluice::quant
