// What ops.h promises of every operation: a row's result is the same bits whatever rows are
// computed with it, and on any number of threads. (attend and experts have files of their own.)
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "backend/ops.h"
#include "unit/backend/expect.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

constexpr int64_t kRows = 33, kCols = 256;
constexpr Type kRowTypes[] = {Type::f32, Type::f16, Type::bf16, Type::q8_0, Type::q4_k, Type::q6_k};

// An operation on some of 33 rows, its result as rows of plain floats.
using Operation = std::function<Rows(Ops& ops, std::span<const int64_t> which)>;

void expect_rows_do_not_meet(const Operation& operation, const std::string& what) {
  std::vector<int64_t> all(kRows);
  std::iota(all.begin(), all.end(), 0);
  std::vector<int64_t> mixed = all;
  for (size_t i = 1; i < mixed.size(); ++i) std::swap(mixed[i], mixed[random_bits(3, i) % i]);

  ThreadPool one_thread(1);
  const Rows expected = operation(*make_cpu_ops(one_thread), all);
  for (const int n_threads : {1, 2, 3, 5}) {
    ThreadPool pool(n_threads);
    const auto ops = make_cpu_ops(pool);
    for (const int64_t split : {1, 2, 3, 7, 32, 33}) {
      for (int64_t begin = 0; begin < kRows; begin += split) {
        const auto which = std::span(mixed).subspan(
            static_cast<size_t>(begin), static_cast<size_t>(std::min(split, kRows - begin)));
        expect_same_bits(expected.picked(which).values, operation(*ops, which).values,
                         what + " threads " + std::to_string(n_threads) + " rows " +
                             std::to_string(split) + " from " + std::to_string(begin));
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(RowsDoNotMeet, InEmbed) {
  for (const Type type : kRowTypes) {
    const Weight table(type, {kCols, 50}, 1);
    expect_rows_do_not_meet(
        [&](Ops& ops, std::span<const int64_t> which) {
          std::vector<TokenId> tokens;
          for (const int64_t r : which) tokens.push_back(static_cast<TokenId>(r * 7 % 50));
          Rows x(std::ssize(which), kCols);
          ops.embed(table.view(), TokenStep(tokens).view(), x.view());
          return x;
        },
        name_of(type));
  }
}

TEST(RowsDoNotMeet, InProjectInAndProjectAdd) {
  const Rows x = Rows::random(kRows, kCols, 2), before = Rows::random(kRows, 45, 3);
  const std::vector<float> norm = random_norm_weight(kCols, 4), bias = random_values(45, 5);
  for (const Type type : kRowTypes) {
    const Weight w(type, {kCols, 45}, 6), other(Type::q8_0, {kCols, 5}, 7);
    const std::vector<Projection> projections = {{w.view(), bias.data()}, {other.view(), nullptr}};
    expect_rows_do_not_meet(
        [&](Ops& ops, std::span<const int64_t> which) {
          Rows out(std::ssize(which), 50);
          const Rows in = x.picked(which);
          ops.project_in(in.view(), {norm.data(), 1e-6f}, projections, out.view());
          return out;
        },
        name_of(type) + " project_in");
    expect_rows_do_not_meet(
        [&](Ops& ops, std::span<const int64_t> which) {
          Rows out = before.picked(which);
          const Rows in = x.picked(which);
          ops.project_add(in.view(), projections[0], out.view());
          return out;
        },
        name_of(type) + " project_add");
  }
}

TEST(RowsDoNotMeet, InLogits) {
  const Rows x = Rows::random(kRows, kCols, 8);
  const std::vector<float> norm = random_norm_weight(kCols, 9);
  for (const Type type : kRowTypes) {
    const Weight output(type, {kCols, 70}, 10);
    expect_rows_do_not_meet(
        [&](Ops& ops, std::span<const int64_t> which) {
          const std::vector<int32_t> rows(which.begin(), which.end());
          Rows out(std::ssize(which), 70);
          ops.logits(x.view(), LogitStep(rows).view(), 0, {norm.data(), 1e-6f}, output.view(),
                     out.view());
          return out;
        },
        name_of(type));
  }
}

// Experts, weights, the shared weight and both forms of the input, side by side as one row.
TEST(RowsDoNotMeet, InRoute) {
  constexpr int kUsed = 4;
  const Rows x = Rows::random(kRows, kCols, 11);
  const std::vector<float> norm = random_norm_weight(kCols, 12);
  const std::vector<float> gate = random_values(kCols, 13, 0.1f);
  for (const Type type : kRowTypes) {
    const Weight router(type, {kCols, 30}, 14);
    expect_rows_do_not_meet(
        [&](Ops& ops, std::span<const int64_t> which) {
          const int64_t n = std::ssize(which);
          ExpertInput input(n, kCols);
          Routing routing(n, kUsed);
          ops.route(x.picked(which).view(), {norm.data(), 1e-6f},
                    {router.view(), kUsed, true, gate.data()}, input.view(), routing.view());
          Rows out(n, 2 * kUsed + 1 + 2 * kCols + kCols / 16);
          float* to = out.values.data();
          for (int64_t r = 0; r < n; ++r) {
            const auto put = [&](const auto& from, int64_t count) {
              for (int64_t i = 0; i < count; ++i) {
                *to++ = static_cast<float>(from[static_cast<size_t>(r * count + i)]);
              }
            };
            put(routing.experts, kUsed);
            put(routing.weights, kUsed);
            put(routing.shared_weights, 1);
            put(input.f32.values, kCols);
            put(input.q, kCols);
            put(input.d, kCols / 32);
            put(input.y, kCols / 32);
          }
          return out;
        },
        name_of(type));
  }
}

}  // namespace
}  // namespace sluice::backend::test
