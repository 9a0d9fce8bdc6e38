// Ops::experts with float weights against the formula in float64:
//   x + sum_k w_k down_k(silu(gate_k a) * (up_k a)) + g shared(a)
// experts_test.cpp holds the same operation to the bit; this one holds the contract to the math.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "backend/ops.h"
#include "unit/backend/reference.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

// silu(g) u: the slope of silu is at most 1.1; exp is off by 2.2 units, and 1 +, / and * round.
Bounded swiglu_reference(const Bounded& g, const Bounded& u) {
  const double silu = g.value / (1 + std::exp(-g.value));
  const double error = 1.1 * g.error + 4.2 * kUnit * (std::abs(silu) + 1.1 * g.error);
  return {silu * u.value, kSlack * (error * u.magnitude() + std::abs(silu) * u.error +
                                    kUnit * std::abs(silu) * u.magnitude())};
}

struct Matrices {
  Weight gate, up, down;
  Type type;

  Matrices(Type t, int64_t d_model, int64_t d_ff, int64_t n, uint64_t seed)
      : gate(t, {d_model, d_ff, n}, seed),
        up(t, {d_model, d_ff, n}, seed + 1),
        down(t, {d_ff, d_model, n}, seed + 2),
        type(t) {}

  BoundedRow reference(int64_t expert, std::span<const float> a) const {
    const int64_t d_ff = gate.view().n_rows, d_model = down.view().n_rows;
    const BoundedRow input = exactly(a);
    BoundedRow h, out;
    for (int64_t n = expert * d_ff; n < (expert + 1) * d_ff; ++n) {
      h.push_back(
          swiglu_reference(dot_reference(gate, type, n, input), dot_reference(up, type, n, input)));
    }
    for (int64_t n = expert * d_model; n < (expert + 1) * d_model; ++n) {
      out.push_back(dot_reference(down, type, n, h));
    }
    return out;
  }
};

TEST(ExpertsFloat, AreTheFormulaWithinTheirRoundings) {
  constexpr int64_t kModel = 24, kFf = 19, kShared = 13, kRows = 5;
  constexpr int kExperts = 6, kUsed = 3;
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (const bool has_shared : {false, true}) {
      const Matrices routed(type, kModel, kFf, kExperts, 201);
      const Matrices shared(type, kModel, kShared, 1, 211);
      ExpertsView experts{routed.gate.view(), routed.up.view(), routed.down.view()};
      if (has_shared) {
        experts.shared_gate = shared.gate.view();
        experts.shared_up = shared.up.view();
        experts.shared_down = shared.down.view();
      }
      const Rows a = Rows::random(kRows, kModel, 221), before = Rows::random(kRows, kModel, 222);
      Routing routing = Routing::random(kRows, kUsed, kExperts, 223);
      ExpertInput input(a);
      Rows x = before;
      ThreadPool pool(2);
      make_cpu_ops(pool)->experts(experts, input.view(), routing.view(), x.view());

      for (int64_t r = 0; r < kRows; ++r) {
        std::vector<std::pair<double, BoundedRow>> terms;
        for (int64_t k = r * kUsed; k < (r + 1) * kUsed; ++k) {
          const auto at = static_cast<size_t>(k);
          terms.emplace_back(routing.weights[at], routed.reference(routing.experts[at], a.row(r)));
        }
        if (has_shared) {
          terms.emplace_back(routing.shared_weights[static_cast<size_t>(r)],
                             shared.reference(0, a.row(r)));
        }
        BoundedRow expected(kModel);
        for (size_t i = 0; i < expected.size(); ++i) {
          Bounded sum;
          double lost = 0;
          for (const auto& [weight, row] : terms) {
            sum.value += weight * row[i].value;
            sum.error += std::abs(weight) * row[i].error;
            lost += std::abs(weight) * row[i].magnitude();
          }
          sum.error = kSlack * (sum.error + static_cast<double>(terms.size()) * kUnit * lost);
          expected[i] = sum_reference(sum, {before.row(r)[i], 0});
        }
        const std::string what =
            name_of(type) + (has_shared ? " shared" : "") + " row " + std::to_string(r);
        expect_within(expected, x.row(r), what);
        expect_sharp(expected, 1e-4, what);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::backend::test
