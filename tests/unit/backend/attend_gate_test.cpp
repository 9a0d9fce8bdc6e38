// Ops::attend with a gate on its output: that of the same queries without gates, times sigmoid.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "quant/swiglu.h"
#include "unit/backend/attention.h"
#include "unit/backend/expect.h"

namespace sluice::backend::test {
namespace {

Rows attend_in_chunks(const Attention& attention, const Rows& qkv, int chunk) {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  const int n = static_cast<int>(qkv.n_rows);
  Cache cache(attention, 1, n, 4, 5);
  std::vector<Rows> outs = {Rows(n, attention.view.q_cols())};
  for (int p = 0; p < n; p += chunk) {
    run_step(*ops, attention, cache, {&qkv, 1}, span_of(0, p, std::min(p + chunk, n)), outs);
  }
  return outs[0];
}

TEST(AttendGate, ScalesTheOutputOfEveryHeadByItsOwn) {
  for (const AttentionShape& shape : {AttentionShape{},
                                      {.n_rot = 8, .head_norm = HeadNorm::per_head},
                                      {.n_heads = 6, .head_dim = 24, .n_rot = 24},
                                      {.k_type = quant::Type::q4_0}}) {
    const Attention plain(shape);
    Attention gated(shape);
    gated.view.is_gated = true;
    const Rows all = gated.random_qkv(11, 61);
    const int64_t dim = shape.head_dim, q_cols = plain.view.q_cols();
    Rows without(all.n_rows, plain.view.qkv_cols()), gates(all.n_rows, q_cols);
    for (int64_t r = 0; r < all.n_rows; ++r) {
      const float* const from = all.row(r).data();
      float* const q = without.view().row(r);
      for (int64_t h = 0; h < shape.n_heads; ++h) {
        std::copy_n(from + 2 * h * dim, dim, q + h * dim);
        std::copy_n(from + (2 * h + 1) * dim, dim, gates.view().row(r) + h * dim);
      }
      std::copy_n(from + 2 * q_cols, 2 * plain.view.kv_cols(), q + q_cols);
    }
    Rows expected = attend_in_chunks(plain, without, 11);
    for (size_t i = 0; i < expected.values.size(); ++i) {
      expected.values[i] *= quant::sigmoid(gates.values[i]);
    }
    for (const int chunk : {1, 4, 11}) {
      expect_same_bits(expected.values, attend_in_chunks(gated, all, chunk).values,
                       describe(shape) + ", " + std::to_string(chunk) + " at a time");
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
