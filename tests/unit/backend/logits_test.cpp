// Ops::logits against float64.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ops.h"
#include "unit/backend/product.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

TEST(Logits, AreThoseOfTheChosenRowsInTheirOrder) {
  for (const Type type : {Type::f32, Type::f16, Type::q6_k, Type::q8_0}) {
    ThreadPool pool(3);
    const auto ops = make_cpu_ops(pool);
    constexpr int64_t kCols = 256, kVocab = 67;
    const Weight output(type, {kCols, kVocab}, 61);
    const std::vector<float> norm_weight = random_norm_weight(kCols, 62);
    const NormView norm{norm_weight.data(), kProductEps};
    const Rows x = Rows::random(9, kCols, 63), untouched = x;
    for (const std::vector<int32_t>& rows :
         {std::vector<int32_t>{8}, {0, 1, 2}, {5, 5}, {8, 0, 3, 7, 1}}) {
      Rows logits(std::ssize(rows), kVocab);
      ops->logits(x.view(), LogitStep(rows).view(), 0, norm, output.view(), logits.view());
      for (int64_t i = 0; i < logits.n_rows; ++i) {
        const BoundedRow h = norm_reference(x.row(rows[static_cast<size_t>(i)]), norm);
        BoundedRow expected;
        for (int64_t n = 0; n < kVocab; ++n) {
          expected.push_back(sum_reference(dot_reference(output, type, n, h), {}));
        }
        const std::string what = name_of(type) + " row " + std::to_string(i);
        expect_within(expected, logits.row(i), what);
        expect_sharp(expected, sharpness(type), what);
      }
    }
    expect_same_bits(untouched.values, x.values, "x is only read");
  }
}

}  // namespace
}  // namespace sluice::backend::test
