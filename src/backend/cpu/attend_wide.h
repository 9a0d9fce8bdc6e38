// The inner loops of attention with AVX-512, for eight queries at a time: the bits of the loops in
// attend_block.cpp, which serve where there are fewer queries or no such instructions. Nothing here
// may be called unless can_attend_wide().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/type.h"

namespace sluice::backend::cpu {

constexpr int kWideQueries = 8;

inline bool can_attend_wide() {
#if defined(__x86_64__)
  static const bool can = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return can;
#else
  return false;
#endif
}

// Whether it pays: attention over 1024 tokens took half the time on Sapphire Rapids, but a seventh
// more on Zen 4, which does 512 bits in two halves.
inline bool attends_wide() {
#if defined(__x86_64__)
  static const bool does = can_attend_wide() && !__builtin_cpu_is("amdfam19h");
  return does;
#else
  return false;
#endif
}

// Rows of a float type that lie row_bytes apart.
struct WideRows {
  quant::Type type;
  const std::byte* data;
  int64_t row_bytes;
};

// scores[q][k] = queries[q] . keys[k] for four keys; rows of queries and of scores lie so far
// apart.
void wide_dots(const float* queries, int query_stride, const WideRows& keys, int head_dim,
               float* scores, int score_stride);

// o[q] = o[q] * factors[q] + sum_{t < n_values} weights[q][t] values[t], 32 columns.
struct WideWeights {
  const float* weights;
  int stride;
  const float* factors;
  int n_values;
};
void wide_weigh(const WideWeights& by, const WideRows& values, float* o, int o_stride);

}  // namespace sluice::backend::cpu
