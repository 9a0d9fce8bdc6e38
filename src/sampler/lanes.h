// Loops over a whole vocabulary, written so that the compiler turns them into vector code without
// being allowed to reorder arithmetic: the partial results of kLanes lanes are part of the
// definition. The same bits on every machine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace sluice::sampler {

inline constexpr float kInf = std::numeric_limits<float>::infinity();
inline constexpr size_t kLanes = 16;

// The largest; -inf for none.
inline float max_of(std::span<const float> x) {
  float lane[kLanes];
  for (float& m : lane) m = -kInf;
  size_t i = 0;
  for (; i + kLanes <= x.size(); i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] = x[i + j] > lane[j] ? x[i + j] : lane[j];
  }
  float most = -kInf;
  for (; i < x.size(); ++i) most = x[i] > most ? x[i] : most;
  for (const float m : lane) most = m > most ? m : most;
  return most;
}

// The sum of term(i) over i in [0, n), in double: lane j adds up every kLanes-th from j, then the
// lanes are added in order, then what is left over.
template <typename Term>
double sum_of(size_t n, Term&& term) {
  double lane[kLanes] = {};
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (size_t j = 0; j < kLanes; ++j) lane[j] += static_cast<double>(term(i + j));
  }
  double sum = 0.0;
  for (const double part : lane) sum += part;
  for (; i < n; ++i) sum += static_cast<double>(term(i));
  return sum;
}

// Whether one of n numbers is above the bar.
inline bool any_above(const float* x, size_t n, float bar) {
  uint32_t found = 0;
  for (size_t i = 0; i < n; ++i) found |= static_cast<uint32_t>(x[i] > bar);
  return found != 0;
}

// exp(x) for x <= 0, within 3 units in the last place; 0 below -87, also for -inf.
//
//   n = round(x log2 e),  r = x - n ln 2,  exp(x) = 2^n (1 + r + r^2/2! + ... + r^7/7!)
//
// |r| <= 0.347, so the rest of the series is below 6e-9. n falls out of the low bits of a sum with
// 1.5 * 2^23, whose units are ones; ln 2 is split so that n * kLn2Hi is exact.
inline float exp_of_negative(float x) {
  constexpr float kMagic = 0x1.8p23f;
  constexpr float kLog2e = 0x1.715476p+0f;
  constexpr float kLn2Hi = 0x1.62ep-1f;
  constexpr float kLn2Lo = 0x1.0bfbe8p-15f;
  const float t = std::fma(x, kLog2e, kMagic);
  const float n = t - kMagic;
  const float r = std::fma(n, -kLn2Lo, std::fma(n, -kLn2Hi, x));
  float p = 1.0f / 5040.0f;
  p = std::fma(p, r, 1.0f / 720.0f);
  p = std::fma(p, r, 1.0f / 120.0f);
  p = std::fma(p, r, 1.0f / 24.0f);
  p = std::fma(p, r, 1.0f / 6.0f);
  p = std::fma(p, r, 0.5f);
  p = std::fma(p, r, 1.0f);
  p = std::fma(p, r, 1.0f);
  const uint32_t shift = (std::bit_cast<uint32_t>(t) - std::bit_cast<uint32_t>(kMagic)) << 23;
  // The mask instead of a condition, which would become a branch.
  const uint32_t mask = 0u - static_cast<uint32_t>(x >= -87.0f);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(p) + shift) & mask);
}

}  // namespace sluice::sampler
