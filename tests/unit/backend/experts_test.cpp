// The numeric contract on the CPU: Ops::experts equals the contract's own functions, called one by
// one for each token, to the last bit, whatever the types, threads, rows and grouping.
// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <numeric>

#include "backend/cpu/host_memory.h"
#include "backend/ops.h"
#include "quant/combine.h"
#include "quant/dot.h"
#include "quant/swiglu.h"
#include "unit/backend/expect.h"
#include "unit/backend/routing.h"

namespace sluice::backend::test {
namespace {

using quant::Type;

struct ExpertsCase {
  Type gate, up, down;
  int64_t d_model = 256, d_ff = 256;
  int n_experts = 8, n_used = 3;
  int64_t d_ff_shared = 0;  // 0: no shared expert
  Type shared = Type::f32;
};

std::string describe(const ExpertsCase& c) {
  return name_of(c.gate) + "/" + name_of(c.up) + "/" + name_of(c.down) + " [" +
         std::to_string(c.d_model) + ", " + std::to_string(c.d_ff) + "]" +
         (c.d_ff_shared > 0 ? " shared " + name_of(c.shared) : "");
}

struct ExpertWeights {
  explicit ExpertWeights(const ExpertsCase& c)
      : gate(c.gate, {c.d_model, c.d_ff, c.n_experts}, 111, 0.1f),
        up(c.up, {c.d_model, c.d_ff, c.n_experts}, 112, 0.1f),
        down(c.down, {c.d_ff, c.d_model, c.n_experts}, 113, 0.1f),
        shared_gate(c.shared, {c.d_model, std::max<int64_t>(c.d_ff_shared, 1)}, 114, 0.1f),
        shared_up(c.shared, {c.d_model, std::max<int64_t>(c.d_ff_shared, 1)}, 115, 0.1f),
        shared_down(c.d_ff_shared > 0 ? c.shared : Type::f32,
                    {std::max<int64_t>(c.d_ff_shared, 1), c.d_model}, 116, 0.1f),
        has_shared(c.d_ff_shared > 0) {}

  ExpertsView view() const {
    ExpertsView v{.gate = gate.view(), .up = up.view(), .down = down.view()};
    if (has_shared) {
      v.shared_gate = shared_gate.view();
      v.shared_up = shared_up.view();
      v.shared_down = shared_down.view();
    }
    return v;
  }

  Weight gate, up, down, shared_gate, shared_up, shared_down;
  bool has_shared;
};

// Parts A and B for one matrix and one input row.
std::vector<float> literal_product(const WeightView& w, std::span<const float> x) {
  const int64_t n = std::ssize(x);
  const bool is_float = quant::is_float(w.type);
  std::vector<int8_t> q(x.size());
  std::vector<float> d(x.size() / 32), y(x.size() / 32), out;
  if (!is_float) quant::quantize_activation(x, q.data(), d.data(), y.data());
  for (int64_t r = 0; r < w.n_rows; ++r) {
    out.push_back(is_float ? quant::dot_float(w.type, w.row(r), x.data(), n)
                           : quant::dot(w.type, w.row(r), n, {q.data(), d.data(), y.data()}));
  }
  return out;
}

// down(SwiGLU(gate a, up a)) for one token and one expert.
std::vector<float> literal_expert(const WeightView& gate, const WeightView& up,
                                  const WeightView& down, std::span<const float> a) {
  const std::vector<float> g = literal_product(gate, a), u = literal_product(up, a);
  std::vector<float> h(g.size());
  quant::swiglu(g, u, h.data());
  return literal_product(down, h);
}

Rows literal_experts(const ExpertsView& e, const Rows& a, const Routing& routing, Rows x) {
  const auto n_used = static_cast<size_t>(routing.n_used);
  for (int64_t r = 0; r < a.n_rows; ++r) {
    const size_t first = static_cast<size_t>(r) * n_used;
    std::vector<float> outs, shared;
    for (size_t k = 0; k < n_used; ++k) {
      const int32_t m = routing.experts[first + k];
      const auto one = literal_expert(e.gate.matrix(m), e.up.matrix(m), e.down.matrix(m), a.row(r));
      outs.insert(outs.end(), one.begin(), one.end());
    }
    if (e.shared_gate) {
      shared = literal_expert(e.shared_gate, e.shared_up, e.shared_down, a.row(r));
    }
    quant::combine(std::span(routing.weights).subspan(first, n_used), outs.data(), x.n_cols,
                   e.shared_gate ? shared.data() : nullptr,
                   e.shared_gate ? routing.shared_weights[static_cast<size_t>(r)] : 0.0f,
                   {x.view().row(r), static_cast<size_t>(x.n_cols)});
  }
  return x;
}

// Some rows of a step, computed together.
Rows run_rows(Ops& ops, const ExpertsView& experts, const Rows& a, const Routing& routing,
              const Rows& x, std::span<const int64_t> which) {
  ExpertInput input(a.picked(which));
  Routing choice = routing.picked(which);
  Rows out = x.picked(which);
  ops.experts(experts, input.view(), choice.view(), out.view());
  return out;
}

const std::vector<ExpertsCase>& cases() {
  static const std::vector<ExpertsCase> kCases = {
      {Type::q4_k, Type::q4_k, Type::q6_k},
      {Type::q4_k, Type::q5_k, Type::q4_k, 512, 256, 8, 2, 256, Type::q8_0},
      {Type::q2_k, Type::q3_k, Type::q5_k},
      {Type::iq4_xs, Type::q6_k, Type::iq4_nl, 256, 96},
      // Rows that end within a chunk of 256, and matrices that end within a piece of 32 rows.
      {Type::q8_0, Type::q8_0, Type::q8_0, 96, 160, 5, 5},
      {Type::q4_0, Type::q5_0, Type::q8_0, 288, 32, 4, 1, 64, Type::q4_1},
      {Type::mxfp4, Type::mxfp4, Type::mxfp4, 64, 96},
      {Type::q4_1, Type::q5_1, Type::mxfp4, 32, 64, 3, 2},
      // Float types, and experts that read both forms of the input.
      {Type::f32, Type::f32, Type::f32, 7, 33, 6, 2, 5, Type::f16},
      {Type::f16, Type::bf16, Type::f32, 40, 50},
      {Type::bf16, Type::q8_0, Type::q4_0, 64, 96, 8, 3, 32, Type::q8_0},
      {Type::q8_0, Type::q8_0, Type::f16, 64, 40, 8, 3, 33, Type::f32},
  };
  return kCases;
}

TEST(Experts, EqualTheLiteralContractForOneTokenToSixteen) {
  for (const ExpertsCase& c : cases()) {
    const ExpertWeights weights(c);
    for (int64_t n_rows = 1; n_rows <= 16; ++n_rows) {
      if (n_rows > 3 && n_rows % 5 != 1) continue;  // 1, 2, 3, 6, 11, 16
      const uint64_t seed = static_cast<uint64_t>(n_rows);
      const Rows a = Rows::random(n_rows, c.d_model, 120 + seed);
      const Rows x = Rows::random(n_rows, c.d_model, 140 + seed);
      Routing routing = Routing::random(n_rows, c.n_used, c.n_experts, 160 + seed);
      const Rows expected = literal_experts(weights.view(), a, routing, x);
      ThreadPool pool(2);
      const auto ops = make_cpu_ops(pool);
      ExpertInput input(a);
      Rows got = x;
      ops->experts(weights.view(), input.view(), routing.view(), got.view());
      expect_same_bits(expected.values, got.values,
                       describe(c) + " rows " + std::to_string(n_rows));
    }
  }
}

TEST(Experts, NoNumberOfThreadsAndNoSplitOfTheRowsChangesABit) {
  constexpr int64_t kRows = 16;
  std::vector<int64_t> forwards(kRows);
  std::iota(forwards.begin(), forwards.end(), 0);
  const std::vector<int64_t> backwards(forwards.rbegin(), forwards.rend());
  struct Split {
    int64_t n_rows;
    const std::vector<int64_t>& order;
  };
  for (const ExpertsCase& c : cases()) {
    const ExpertWeights weights(c);
    const Rows a = Rows::random(kRows, c.d_model, 121), x = Rows::random(kRows, c.d_model, 141);
    const Routing routing = Routing::random(kRows, c.n_used, c.n_experts, 161);
    const Rows expected = literal_experts(weights.view(), a, routing, x);
    for (const int n_threads : {1, 2, 3, 5}) {
      ThreadPool pool(n_threads);
      const auto ops = make_cpu_ops(pool);
      for (const Split& split : {Split{1, forwards}, Split{5, backwards}, Split{16, forwards}}) {
        for (int64_t begin = 0; begin < kRows; begin += split.n_rows) {
          const auto which =
              std::span(split.order)
                  .subspan(static_cast<size_t>(begin),
                           static_cast<size_t>(std::min(split.n_rows, kRows - begin)));
          const Rows got = run_rows(*ops, weights.view(), a, routing, x, which);
          expect_same_bits(expected.picked(which).values, got.values,
                           describe(c) + " threads " + std::to_string(n_threads) + " rows " +
                               std::to_string(split.n_rows) + " from " + std::to_string(begin));
        }
      }
    }
  }
}

// All rows on one expert, and each row on its own: the two extremes of grouping.
TEST(Experts, NoGroupingOfTokensChangesABit) {
  for (const ExpertsCase& c : cases()) {
    const ExpertWeights weights(c);
    const int64_t n_rows = c.n_experts;
    const Rows a = Rows::random(n_rows, c.d_model, 122), x = Rows::random(n_rows, c.d_model, 142);
    for (const bool together : {true, false}) {
      Routing routing = Routing::random(n_rows, 1, c.n_experts, 162);
      for (int64_t r = 0; r < n_rows; ++r) {
        routing.experts[static_cast<size_t>(r)] = static_cast<int32_t>(together ? 2 : r);
      }
      const Rows expected = literal_experts(weights.view(), a, routing, x);
      ThreadPool pool(3);
      const auto ops = make_cpu_ops(pool);
      ExpertInput input(a);
      Rows got = x;
      ops->experts(weights.view(), input.view(), routing.view(), got.view());
      expect_same_bits(expected.values, got.values, describe(c) + (together ? " one" : " each"));
    }
  }
}

// All in a row, or found by a table in the opposite order. What stands in the gaps is not read.
TEST(Experts, EachInOnePieceGiveTheSameBits) {
  constexpr int64_t kRows = 5;
  for (const ExpertsCase& c : cases()) {
    const ExpertWeights weights(c);
    ExpertsView view = weights.view();
    const ExpertLayout layout(view);
    const auto n_experts = static_cast<size_t>(c.n_experts);
    const Buffer memory = allocate_host(2 * n_experts * layout.stride);
    std::fill_n(memory.data(), memory.n_bytes(), std::byte{0xff});
    std::vector<const std::byte*> table(n_experts);
    for (size_t e = 0; e < n_experts; ++e) {
      const ExpertMatrices from = view.expert(static_cast<int32_t>(e));
      for (const size_t place : {e, 2 * n_experts - 1 - e}) {
        std::byte* const slot = memory.data() + place * layout.stride;
        std::copy_n(from.gate.data, from.gate.matrix_bytes(), slot);
        std::copy_n(from.up.data, from.up.matrix_bytes(), slot + layout.up_at);
        std::copy_n(from.down.data, from.down.matrix_bytes(), slot + layout.down_at);
        table[e] = slot;
      }
    }
    const Rows a = Rows::random(kRows, c.d_model, 123), x = Rows::random(kRows, c.d_model, 143);
    Routing routing = Routing::random(kRows, c.n_used, c.n_experts, 163);
    const Rows expected = literal_experts(view, a, routing, x);
    view.gate.data = view.up.data = view.down.data = nullptr;
    view.slots = memory.data();
    ThreadPool pool(2);
    const auto ops = make_cpu_ops(pool);
    ExpertInput input(a);
    for (const bool by_table : {false, true}) {
      if (by_table) view.table = table.data();
      Rows got = x;
      ops->experts(view, input.view(), routing.view(), got.view());
      expect_same_bits(expected.values, got.values, describe(c) + (by_table ? " table" : " row"));
    }
  }
}

// Buffers that a larger step left behind, of other types and widths, must not show.
TEST(Experts, OneObjectMayServeLayersOfDifferentShapes) {
  ThreadPool pool(2);
  const auto ops = make_cpu_ops(pool);
  for (const int64_t n_rows : {16, 1, 5}) {
    for (const ExpertsCase& c : cases()) {
      const ExpertWeights weights(c);
      const Rows a = Rows::random(n_rows, c.d_model, 123), x = Rows::random(n_rows, c.d_model, 143);
      Routing routing = Routing::random(n_rows, c.n_used, c.n_experts, 163);
      ExpertInput input(a);
      Rows got = x;
      ops->experts(weights.view(), input.view(), routing.view(), got.view());
      expect_same_bits(literal_experts(weights.view(), a, routing, x).values, got.values,
                       describe(c) + " rows " + std::to_string(n_rows));
    }
  }
}

TEST(ExpertsDeathTest, StopsAtAnExpertThatDoesNotExist) {
  const ExpertsCase c{Type::f32, Type::f32, Type::f32, 8, 8};
  const ExpertWeights weights(c);
  ThreadPool pool(1);
  const auto ops = make_cpu_ops(pool);
  ExpertInput input(Rows::random(1, 8, 1));
  Rows x(1, 8);
  for (const int32_t expert : {8, -1}) {
    Routing routing = Routing::random(1, 3, 8, 2);
    routing.experts[1] = expert;
    EXPECT_DEATH(ops->experts(weights.view(), input.view(), routing.view(), x.view()),
                 "CHECK.*expert");
  }
}

}  // namespace
}  // namespace sluice::backend::test
