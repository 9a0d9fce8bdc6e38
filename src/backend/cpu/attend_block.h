// The inner loops of attention: queries that share keys and values, against one block of positions
// whose keys and values have been widened to f32. Which queries stand together never changes the
// result of one; attend_tile.h has the formulas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backend/cpu/attend_cached.h"

namespace sluice::backend::cpu {

constexpr int kBlockPositions = 64;
constexpr int kKeysAtOnce = 4;

// Rows of queries, keys, values and outputs lie this far apart, so that they can be taken 32 values
// at a time; 16 more put the rows of a column into different sets of the L1 cache. What is behind
// head_dim is 0 in queries and keys, and of no meaning in values and outputs.
constexpr int row_stride(int head_dim) { return (head_dim + 31) / 32 * 32 + 16; }

// The turns that score_block and weigh_block grant to `ahead`.
int n_score_turns(int n_queries, int n_keys);
int n_weigh_turns(int n_queries, int head_dim);

// scores[q][t] = queries[q] . keys[t], kKeysAtOnce at a time: there must be memory behind keys and
// scores where their number is not a multiple of it. scores: [n_queries, kBlockPositions].
void score_block(const float* queries, int n_queries, const FloatRows& keys, int head_dim,
                 float* scores, Ahead ahead);

// Takes n scores (1 .. kBlockPositions) of one query, times scale, into its softmax (m, l) and
// turns them into weights, in place; scores has room for n rounded up to 8. Returns the factor of
// all earlier weights.
float soften_block(float* scores, int n, float scale, float& m, float& l);

// o[q] = o[q] * factors[q] + sum_t weights[q][t] values[t - begin], t from begin to before
// min(begin + values.n, n_seen[q]). 32 columns at a time: there must be memory behind values where
// head_dim is not a multiple of it. weights: [n_queries, kBlockPositions].
struct Weighed {
  const float* weights;
  const float* factors;
  const int32_t* n_seen;
  int n_queries;
};
void weigh_block(const Weighed& by, const FloatRows& values, int begin, int head_dim, float* o,
                 Ahead ahead);

}  // namespace sluice::backend::cpu
