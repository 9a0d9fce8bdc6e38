// The matrix products of the trunk: project_in, project_add and logits, against float64, and for
// quantised weights also bit for bit against the contract's functions called one by one.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/cpu/rms_norm.h"
#include "backend/ops.h"
#include "quant/dot.h"
#include "unit/backend/reference.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

constexpr float kEps = 1e-6f;

// How small a bound must be beside the largest result. For float types it is made of roundings; for
// quantised ones of half an int8 step for every value, all of one sign: a few percent of a result
// with random signs, more for short rows. Those are held to the bit as well.
double sharpness(Type type) { return quant::is_float(type) ? 1e-4 : 0.25; }

// One dot as quant/ defines it.
float literal_dot(const Weight& w, Type type, int64_t row, std::span<const float> x) {
  const int64_t n = std::ssize(x);
  const WeightView view = w.view();
  if (quant::is_float(type)) return quant::dot_float(type, view.row(row), x.data(), n);
  std::vector<int8_t> q(x.size());
  std::vector<float> d(x.size() / 32), y(x.size() / 32);
  quant::quantize_activation(x, q.data(), d.data(), y.data());
  return quant::dot(type, view.row(row), n, {q.data(), d.data(), y.data()});
}

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
  const NormView norm{norm_weight.data(), kEps};
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

TEST(Logits, AreThoseOfTheChosenRowsInTheirOrder) {
  for (const Type type : {Type::f32, Type::f16, Type::q6_k, Type::q8_0}) {
    ThreadPool pool(3);
    const auto ops = make_cpu_ops(pool);
    constexpr int64_t kCols = 256, kVocab = 67;
    const Weight output(type, {kCols, kVocab}, 61);
    const std::vector<float> norm_weight = random_norm_weight(kCols, 62);
    const NormView norm{norm_weight.data(), kEps};
    const Rows x = Rows::random(9, kCols, 63), untouched = x;
    for (const std::vector<int32_t>& rows :
         {std::vector<int32_t>{8}, {0, 1, 2}, {5, 5}, {8, 0, 3, 7, 1}}) {
      Rows logits(std::ssize(rows), kVocab);
      ops->logits(x.view(), rows, norm, output.view(), logits.view());
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
