// Ops::route: which experts, in which order, with which weights, and the norm in both its forms.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/rms_norm.h"
#include "backend/ops.h"
#include "unit/backend/reference.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

struct RouteCase {
  Type type = Type::f32;
  int n_experts = 16;
  int n_used = 4;
  bool renormalize = false;
  int64_t n_rows = 5;
  int64_t n_cols = 64;
};

std::string describe(const RouteCase& c) {
  return name_of(c.type) + " " + std::to_string(c.n_used) + " of " + std::to_string(c.n_experts) +
         (c.renormalize ? " renormalised" : "");
}

struct RouteRun {
  explicit RouteRun(const RouteCase& c)
      : x(Rows::random(c.n_rows, c.n_cols, 101)),
        router(c.type, {c.n_cols, c.n_experts}, 102),
        norm_weight(random_norm_weight(c.n_cols, 103)),
        shared_gate(random_values(c.n_cols, 104, 0.1f)),
        input(c.n_rows, c.n_cols),
        routing(c.n_rows, c.n_used) {}

  void start(const RouteCase& c) {
    ThreadPool pool(3);
    make_cpu_ops(pool)->route(x.view(), norm(),
                              {router.view(), c.n_used, c.renormalize, shared_gate.data()},
                              input.view(), routing.view());
  }
  NormView norm() const { return {norm_weight.data(), 1e-6f}; }

  Rows x;
  Weight router;
  std::vector<float> norm_weight, shared_gate;
  ExpertInput input;
  Routing routing;
};

// The n_used largest of p; the gap to the next must be beyond doubt, or the case says nothing.
std::vector<size_t> best_of(const BoundedRow& p, size_t n_used, const std::string& what) {
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, [&](size_t a, size_t b) { return p[a].value > p[b].value; });
  for (size_t k = 0; k < n_used && k + 1 < p.size(); ++k) {
    const Bounded &a = p[order[k]], &b = p[order[k + 1]];
    EXPECT_GT(a.value - b.value, a.error + b.error) << what << ": rank " << k << " is too close";
  }
  order.resize(n_used);
  return order;
}

// Renormalised weights are divided by a sum that has the errors of all of them and n_used
// roundings.
void check_route(const RouteCase& c) {
  RouteRun run(c);
  run.start(c);
  const auto n_used = static_cast<size_t>(c.n_used);
  for (int64_t r = 0; r < c.n_rows; ++r) {
    const std::string what = describe(c) + " row " + std::to_string(r);
    const BoundedRow h = norm_reference(run.x.row(r), run.norm());
    BoundedRow scores;
    for (int e = 0; e < c.n_experts; ++e) {
      scores.push_back(sum_reference(dot_reference(run.router, c.type, e, h), {}));
    }
    const BoundedRow p = softmax_reference(scores);
    const std::vector<size_t> best = best_of(p, n_used, what);

    Bounded total;
    for (const size_t e : best) total.value += p[e].value, total.error += p[e].error;
    BoundedRow expected;
    const auto first = static_cast<size_t>(r) * n_used;
    for (size_t k = 0; k < n_used; ++k) {
      const Bounded& one = p[best[k]];
      ASSERT_EQ(run.routing.experts[first + k], static_cast<int32_t>(best[k]))
          << what << " rank " << k;
      expected.push_back(one);
      if (!c.renormalize) continue;
      const double relative = one.error / one.value + total.error / total.value +
                              (static_cast<double>(n_used) + 1) * kUnit;
      expected.back() = {one.value / total.value, kSlack * relative * one.value / total.value};
    }
    const auto got = std::span(run.routing.weights).subspan(first, n_used);
    expect_within(expected, got, what);
    expect_sharp(expected, 0.01, what);
    if (c.renormalize) {
      // Each is rounded once, and the sum they are divided by n_used - 1 times.
      const double sum = std::accumulate(got.begin(), got.end(), 0.0);
      EXPECT_NEAR(sum, 1.0, kSlack * kUnit * static_cast<double>(n_used)) << what;
    }
  }
}

TEST(Route, ChoosesTheLargestOfTheSoftmaxBestFirst) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (const bool renormalize : {false, true}) {
      check_route({.type = type, .renormalize = renormalize});
      check_route({.type = type, .n_experts = 60, .n_used = 1, .renormalize = renormalize});
      check_route({.type = type, .n_experts = 9, .n_used = 9, .renormalize = renormalize});
      check_route({.type = type, .n_experts = 128, .n_used = 8, .renormalize = renormalize});
    }
  }
}

// sigmoid(gate . h): the error of the product goes through with a slope of at most 1/4; then exp
// (2.2 units), 1 + and 1 /.
TEST(Route, GivesTheSharedExpertTheSigmoidOfItsGate) {
  const RouteCase c{.n_rows = 7};
  RouteRun run(c);
  run.start(c);
  BoundedRow expected;
  for (int64_t r = 0; r < c.n_rows; ++r) {
    const BoundedRow h = norm_reference(run.x.row(r), run.norm());
    double z = 0, error = 0;
    for (size_t i = 0; i < h.size(); ++i) {
      const double gate = run.shared_gate[i];
      z += gate * h[i].value;
      error += std::abs(gate) * (h[i].error + dot_roundings(c.n_cols) * kUnit * h[i].magnitude());
    }
    const double g = 1 / (1 + std::exp(-z));
    expected.push_back({g, kSlack * (error / 4 + 4.2 * kUnit * g)});
  }
  expect_within(expected, run.routing.shared_weights, "shared gate");
  expect_sharp(expected, 1e-4, "shared gate");
}

TEST(Route, WithoutASharedGateItsWeightsStayUntouched) {
  const RouteCase c;
  RouteRun run(c);
  ThreadPool pool(1);
  make_cpu_ops(pool)->route(run.x.view(), run.norm(), {run.router.view(), c.n_used, false, nullptr},
                            run.input.view(),
                            {c.n_used, run.routing.experts.data(), run.routing.weights.data()});
  for (const float w : run.routing.shared_weights) EXPECT_EQ(w, -777.0f);
}

TEST(Route, GivesTheNormInBothFormsToTheBit) {
  const RouteCase c{.n_rows = 9, .n_cols = 96};
  RouteRun run(c);
  run.start(c);
  for (int64_t r = 0; r < c.n_rows; ++r) {
    std::vector<float> h(96), d(3), y(3);
    std::vector<int8_t> q(96);
    cpu::rms_norm(run.x.row(r), run.norm(), h.data());
    quant::quantize_activation(h, q.data(), d.data(), y.data());
    const std::string what = "row " + std::to_string(r);
    const auto at = static_cast<size_t>(r);
    expect_same_bits(h, run.input.f32.row(r), what + " f32");
    expect_same_bits(d, std::span(run.input.d).subspan(at * 3, 3), what + " d");
    expect_same_bits(y, std::span(run.input.y).subspan(at * 3, 3), what + " y");
    for (size_t i = 0; i < 96; ++i) {
      ASSERT_EQ(run.input.q[at * 96 + i], q[i]) << what << ", index " << i;
    }
  }
}

TEST(Route, WritesOnlyTheFormsItIsAskedFor) {
  for (const bool wants_f32 : {false, true}) {
    const RouteCase c;
    RouteRun run(c);
    const ExpertInput before = run.input;
    ExpertInputView a = run.input.view();
    if (!wants_f32) a.f32 = nullptr;
    if (wants_f32) a.q = nullptr, a.d = a.y = nullptr;
    ThreadPool pool(1);
    make_cpu_ops(pool)->route(run.x.view(), run.norm(),
                              {run.router.view(), c.n_used, false, nullptr}, a, run.routing.view());
    EXPECT_EQ(run.input.f32.values == before.f32.values, !wants_f32);
    EXPECT_EQ(run.input.q == before.q, wants_f32);
    EXPECT_EQ(run.input.d == before.d, wants_f32);
  }
}

// Experts 3, 5 and 11 have one row, as have 0 and 15: each pair of twins stands in order.
TEST(Route, EqualExpertsStandInTheOrderOfTheirNumbers) {
  const RouteCase c{.n_experts = 16, .n_used = 16, .n_rows = 20};
  RouteRun run(c);
  for (const auto& [from, to] : {std::pair(11, 3), {11, 5}, {15, 0}}) {
    std::memcpy(run.router.row(to), run.router.row(from), run.router.row_bytes());
  }
  run.start(c);
  for (int64_t r = 0; r < c.n_rows; ++r) {
    const auto* experts = run.routing.experts.data() + r * 16;
    const auto rank = [&](int32_t e) { return std::find(experts, experts + 16, e) - experts; };
    EXPECT_EQ(rank(5), rank(3) + 1) << "row " << r;
    EXPECT_EQ(rank(11), rank(5) + 1) << "row " << r;
    EXPECT_EQ(rank(15), rank(0) + 1) << "row " << r;
  }
}

}  // namespace
}  // namespace sluice::backend::test
