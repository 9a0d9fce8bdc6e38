// The gated delta rule, token by token, for some columns of one head's S: the inner loops of
// Ops::delta_net. In plain lanes, and with AVX-512 to the same bits; nothing of the latter may be
// called unless can_attend_wide().
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace sluice::backend::cpu {

// What one token reads, and leaves, of a head: q and k all of it, the others from the first column
// on. entered (what entered S) is null where nobody wants it.
struct DeltaToken {
  const float *q, *k, *v;
  float *o, *entered;
  float decay, beta;
};

// Columns that a thread takes at a time, at most: 16 KB of S at head_dim 128, which stay in L1.
constexpr int kDeltaColumns = 32;

// S: [n_columns, n_dims], a column's dimensions side by side. `from` null: zeros. n_columns is a
// multiple of 4, n_dims of 8.
struct DeltaColumns {
  const float* from;
  float* to;
  int64_t n_dims;
  int n_columns;
};

void delta_rule(const DeltaToken* tokens, int64_t n_tokens, const DeltaColumns& s);
void wide_delta_rule(const DeltaToken* tokens, int64_t n_tokens, const DeltaColumns& s);

}  // namespace sluice::backend::cpu
