// Ops::project_in against float64, and for quantised weights also bit for bit against the
// contract's functions called one by one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/cpu/rms_norm.h"
#include "backend/ops.h"
#include "unit/backend/product.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

struct Projected {
  Type type;
  int64_t n_rows;
  bool has_bias;
};

void check_project_in(ThreadPool& pool, std::span<const Projected> parts, int64_t n_cols,
                      int64_t n_rows) {
  const auto ops = make_cpu_ops(pool);
  const Rows x = Rows::random(n_rows, n_cols, 41);
  const std::vector<float> norm_weight = random_norm_weight(n_cols, 42);
  const NormView norm{norm_weight.data(), kProductEps};
  std::vector<Weight> weights;
  std::vector<std::vector<float>> biases;
  std::vector<Projection> projections;
  int64_t n_out = 0;
  for (const Projected& part : parts) {
    weights.emplace_back(part.type, Weight::Shape{n_cols, part.n_rows}, 43 + weights.size());
    biases.push_back(random_values(part.n_rows, 90 + weights.size()));
    n_out += part.n_rows;
  }
  for (size_t p = 0; p < parts.size(); ++p) {
    projections.push_back({weights[p].view(), parts[p].has_bias ? biases[p].data() : nullptr});
  }
  Rows out(n_rows, n_out);
  ops->project_in(x.view(), norm, projections, out.view());

  for (int64_t r = 0; r < n_rows; ++r) {
    const BoundedRow h = norm_reference(x.row(r), norm);
    std::vector<float> normed(static_cast<size_t>(n_cols));
    cpu::rms_norm(x.row(r), norm, normed.data());
    size_t column = 0;
    for (size_t p = 0; p < parts.size(); ++p) {
      const auto [type, n, has_bias] = parts[p];
      BoundedRow expected;
      std::vector<float> literal;
      for (int64_t i = 0; i < n; ++i) {
        const float bias = has_bias ? biases[p][static_cast<size_t>(i)] : 0.0f;
        expected.push_back(sum_reference(dot_reference(weights[p], type, i, h), {bias, 0}));
        literal.push_back(literal_dot(weights[p], type, i, normed) + bias);
      }
      const std::string what = name_of(type) + " [" + std::to_string(n_cols) + ", " +
                               std::to_string(n) + "] row " + std::to_string(r) + " of " +
                               std::to_string(n_rows);
      const auto got = out.row(r).subspan(column, literal.size());
      expect_within(expected, got, what);
      expect_sharp(expected, sharpness(type), what);
      expect_same_bits(literal, got, what + " as quant/ computes it");
      column += literal.size();
    }
  }
}

TEST(ProjectIn, GivesEachProjectionOfTheNormSideBySide) {
  ThreadPool pool(3);
  for (const int64_t n_rows : {1, 2, 3, 7, 33}) {
    // q, k and v of three types, one of them with a bias, none of a round number of rows.
    check_project_in(pool,
                     std::vector<Projected>{
                         {Type::q4_k, 70, false}, {Type::f16, 33, true}, {Type::q8_0, 31, true}},
                     256, n_rows);
    check_project_in(pool, std::vector<Projected>{{Type::f32, 1, true}, {Type::f32, 40, false}}, 7,
                     n_rows);
  }
}

TEST(ProjectIn, WorksWithEveryTypeOfWeight) {
  ThreadPool pool(2);
  for (const Type type : quant::supported_types()) {
    for (const bool has_bias : {false, true}) {
      check_project_in(pool, std::vector<Projected>{{type, 37, has_bias}}, 512, 3);
    }
  }
}

TEST(ProjectIn, TakesRowsThatAreNotWholeChunksOrChains) {
  ThreadPool pool(2);
  for (const int64_t n_cols : {1, 31, 33, 100}) {
    check_project_in(pool, std::vector<Projected>{{Type::bf16, 9, true}}, n_cols, 2);
  }
  for (const int64_t n_cols : {32, 96, 288}) {
    for (const Type type : {Type::q8_0, Type::q5_1, Type::mxfp4}) {
      check_project_in(pool, std::vector<Projected>{{type, 9, true}}, n_cols, 2);
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
