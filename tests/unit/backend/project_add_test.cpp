// Ops::project_add against float64, and bit for bit against the contract's functions.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ops.h"
#include "unit/backend/product.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

// x += W in + bias: one addition more than project_in, and the input is exact.
TEST(ProjectAdd, AddsTheProductToWhatIsThere) {
  for (const Type type : {Type::f32, Type::bf16, Type::q8_0, Type::q4_k, Type::q6_k}) {
    for (const int64_t n_rows : {1, 2, 3, 7, 33}) {
      for (const bool has_bias : {false, true}) {
        ThreadPool pool(2);
        const auto ops = make_cpu_ops(pool);
        constexpr int64_t kIn = 256, kOut = 45;
        const Weight w(type, {kIn, kOut}, 51);
        const std::vector<float> bias = random_values(kOut, 52);
        const Rows in = Rows::random(n_rows, kIn, 53), before = Rows::random(n_rows, kOut, 54);
        Rows x = before;
        ops->project_add(in.view(), {w.view(), has_bias ? bias.data() : nullptr}, x.view());
        for (int64_t r = 0; r < n_rows; ++r) {
          BoundedRow expected;
          std::vector<float> literal;
          for (int64_t i = 0; i < kOut; ++i) {
            const size_t at = static_cast<size_t>(i);
            const float b = has_bias ? bias[at] : 0.0f;
            const Bounded product = dot_reference(w, type, i, exactly(in.row(r)));
            expected.push_back(
                sum_reference(sum_reference(product, {b, 0}), {before.row(r)[at], 0}));
            literal.push_back(before.row(r)[at] + (literal_dot(w, type, i, in.row(r)) + b));
          }
          const std::string what = name_of(type) + " row " + std::to_string(r) + " of " +
                                   std::to_string(n_rows) + (has_bias ? " with bias" : "");
          expect_within(expected, x.row(r), what);
          expect_sharp(expected, sharpness(type), what);
          expect_same_bits(literal, x.row(r), what + " as quant/ computes it");
        }
      }
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
