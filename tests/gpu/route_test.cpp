// route on the device: scores within a derived bound of float64, the choice exactly that of its own
// scores, weights within a bound of their softmax, norm(x) to the bit, and the list of groups.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/route.h"

#include <numeric>

#include "backend/cuda/router_products.h"
#include "base/error.h"
#include "gpu/device.h"
#include "quant/half.h"

namespace sluice::backend::cuda::test {
namespace {

using RouteTest = DeviceTest;
constexpr double kU = 0x1p-24;  // of one rounding

struct Case {
  Type type;
  int n_rows, d_model, n_experts, n_used;
  RouterScore score;
  bool renormalize, has_shared;
  int n_live = 16;

  std::string text() const {
    return cat(type_name(type), ", ", n_rows, " rows, d_model ", d_model, ", ", n_used, " of ",
               n_experts, score == RouterScore::softmax ? ", softmax" : ", sigmoid",
               has_shared ? ", shared" : "", ", ", n_live, " live");
  }
};

// Weights as they are stored, and as numbers.
struct RouterWeight {
  RouterWeight(Type type, size_t n, uint64_t seed) : values(random_values(n, seed, 0.05f)) {
    for (float& v : values) {
      const uint16_t half = type == Type::f16 ? quant::f32_to_f16(v) : quant::f32_to_bf16(v);
      if (type == Type::f16) v = quant::f16_to_f32(half);
      if (type == Type::bf16) v = quant::bf16_to_f32(half);
      const auto* const bytes = type == Type::f32 ? reinterpret_cast<const std::byte*>(&v)
                                                  : reinterpret_cast<const std::byte*>(&half);
      stored.insert(stored.end(), bytes, bytes + (type == Type::f32 ? 4 : 2));
    }
  }
  std::vector<float> values;
  std::vector<std::byte> stored;
};

class Check {
 public:
  Check(const Case& c, const Launch& how)
      : c_(c),
        n_scores_(c.n_experts + 1),
        x_(random_values(count(c.n_rows, c.d_model), 1)),
        norm_(random_values(count(1, c.d_model), 2)),
        gate_(random_values(count(1, c.d_model), 3, 0.05f)),
        weight_(c.type, count(c.n_experts, c.d_model), 4),
        a_(c.n_rows, c.d_model),
        experts_(count(c.n_rows, c.n_used)),
        weights_(count(c.n_rows, c.n_used)),
        shared_weights_(count(c.n_rows, 1)),
        scores_(count(c.n_rows, n_scores_)),
        n_groups_(1),
        groups_(count(c.n_rows, c.n_used) + 1) {
    run(how);
  }

  void scores() const {
    const auto got = scores_.get();
    for (int r = 0; r < c_.n_rows; ++r) {
      double squares = 0;
      for (int i = 0; i < c_.d_model; ++i) squares += double{x(r, i)} * x(r, i);
      const double scale = 1 / std::sqrt(squares / c_.d_model + 1e-6f);
      for (int e = 0; e < n_scores_ - !c_.has_shared; ++e) {
        double dot = 0, size = 0;
        for (int i = 0; i < c_.d_model; ++i) {
          const double w =
              e == c_.n_experts ? gate_[index(0, i)] : weight_.values[index(e * c_.d_model, i)];
          dot += w * norm_[index(0, i)] * x(r, i);
          size += std::abs(w * norm_[index(0, i)] * x(r, i));
        }
        // Of four columns a chain, the product g x, and half a unit; then the sum and the scale.
        const double units = c_.d_model / 4 * 0.5 / kScoreUnits;
        const double bound = ((4 + 1 + 1 + 20) * kU * size + units) * scale;
        ASSERT_LE(std::abs(got[index(r * n_scores_, e)] - dot * scale), bound)
            << c_.text() << ", row " << r << ", expert " << e;
      }
    }
  }

  void choice() const {
    const auto scores = scores_.get(), weights = weights_.get();
    const auto experts = experts_.get();
    for (int r = 0; r < c_.n_rows; ++r) {
      const float* const row = scores.data() + r * n_scores_;
      std::vector<int32_t> order(static_cast<size_t>(c_.n_experts));
      std::iota(order.begin(), order.end(), 0);
      std::ranges::stable_sort(order, [&](int32_t a, int32_t b) { return row[a] > row[b]; });
      double all = 0, used = 0;
      const auto p = [&](int32_t e) {
        return c_.score == RouterScore::softmax ? std::exp(double{row[e]} - row[order[0]])
                                                : 1 / (1 + std::exp(-double{row[e]}));
      };
      for (int e = 0; e < c_.n_experts; ++e) all += p(e);
      for (int k = 0; k < c_.n_used; ++k) used += p(order[index(0, k)]);
      for (int k = 0; k < c_.n_used; ++k) {
        const auto i = index(r * c_.n_used, k);
        const int32_t e = order[index(0, k)];
        ASSERT_EQ(e, experts[i]) << c_.text() << ", row " << r << ", rank " << k;
        const double want = p(e) / (c_.renormalize                     ? used
                                    : c_.score == RouterScore::softmax ? all
                                                                       : 1);
        // The difference of scores and two exps of 1.1 ulp, sums of n_experts / 32 + 5 and of
        // n_used, and three divisions.
        const double span = std::abs(double{row[e]} - row[order[0]]) + std::abs(row[e]);
        const double bound = (span + 6 + c_.n_experts / 32 + 5 + c_.n_used + 6) * kU * want;
        ASSERT_LE(std::abs(weights[i] - want), bound) << c_.text() << ", row " << r;
      }
    }
  }

  void input() const {
    HostInt8 want(c_.n_rows, c_.d_model);
    for (int r = 0; r < c_.n_rows; ++r) {
      want.quantize(
          r, device_norm(std::span(x_).subspan(index(r * c_.d_model, 0), count(1, c_.d_model)),
                         norm_, 1e-6f));
    }
    expect_same_int8(want, a_, c_.n_rows, c_.text());
  }

  // Every slot in one group, that of its expert, whose address is table[e] = (e + 1) * 1000.
  void groups() const {
    const auto experts = experts_.get();
    const auto groups = groups_.get();
    const int n = n_groups_.get()[0], n_routed = n - c_.has_shared;
    std::vector<int> seen(experts.size(), 0);
    for (int g = 0; g < n_routed; ++g) {
      const ExpertGroup& group = groups[index(g, 0)];
      for (int i = 0; i < group.n_pairs; ++i) {
        const auto slot = static_cast<size_t>(group.slot[i]);
        ++seen[slot];
        ASSERT_EQ(group.row[i], group.slot[i] / c_.n_used);
        const int32_t e = experts[slot];
        ASSERT_EQ(reinterpret_cast<uintptr_t>(group.gate), e == 1 ? 0u : 1000u * (e + 1u));
        ASSERT_EQ(reinterpret_cast<uintptr_t>(group.down), e == 1 ? 0u : 1000u * (e + 1u) + 200);
      }
    }
    const int n_live = std::min(c_.n_live, c_.n_rows);
    for (size_t s = 0; s < seen.size(); ++s) {
      ASSERT_EQ(seen[s], s < count(n_live, c_.n_used)) << c_.text() << ", slot " << s;
    }
    if (!c_.has_shared) return;
    ASSERT_EQ(groups[index(n_routed, 0)].n_pairs, n_live);
    if (n_live == 0) return;
    ASSERT_EQ(groups[index(n_routed, 0)].slot[0], c_.n_rows * c_.n_used);
  }

 private:
  static size_t count(int n, int m) { return static_cast<size_t>(n) * static_cast<size_t>(m); }
  static size_t index(int base, int i) { return static_cast<size_t>(base + i); }
  float x(int r, int i) const { return x_[index(r * c_.d_model, i)]; }

  void run(const Launch& how) {
    std::vector<uint64_t> table;
    for (int e = 0; e < c_.n_experts; ++e) table.push_back(e == 1 ? 0 : 1000u * (e + 1u));
    const Device<uint64_t> device_table(table);
    const Device<float> x(x_), norm(norm_), gate(gate_);
    const Device<std::byte> weight(weight_.stored);
    const Device<unsigned> n_done(std::vector<unsigned>{0});
    const Device<int32_t> n_live(std::vector<int32_t>{c_.n_live});
    Route p;
    p.x = x.data();
    p.norm = norm.data();
    p.eps = 1e-6f;
    p.n_rows = c_.n_rows;
    p.d_model = c_.d_model;
    if (c_.n_live < c_.n_rows) p.n_live = n_live.data();
    p.type = c_.type;
    p.weight = weight.data();
    p.shared_gate = c_.has_shared ? gate.data() : nullptr;
    p.n_experts = c_.n_experts;
    p.n_used = c_.n_used;
    p.score = c_.score;
    p.renormalize = c_.renormalize;
    p.table = reinterpret_cast<const uint8_t* const*>(device_table.data());
    p.up_at = 100;
    p.down_at = 200;
    if (c_.has_shared) p.shared[0] = p.shared[1] = p.shared[2] = reinterpret_cast<uint8_t*>(64);
    p.a = a_.rows();
    p.experts = experts_.data();
    p.weights = weights_.data();
    p.shared_weights = shared_weights_.data();
    p.list = {n_groups_.data(), groups_.data()};
    p.scores = scores_.data();
    p.n_done = n_done.data();
    for (int i = 0; i < 3; ++i) route(p, how);  // the counter must come back to 0
    EXPECT_EQ(n_done.get()[0], 0u);
  }

  Case c_;
  int n_scores_;
  std::vector<float> x_, norm_, gate_;
  RouterWeight weight_;
  DeviceInt8 a_;
  Device<int32_t> experts_;
  Device<float> weights_, shared_weights_, scores_;
  Device<int32_t> n_groups_;
  Device<ExpertGroup> groups_;
};

TEST_F(RouteTest, ChoosesAsItsScoresSay) {
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (const int n_rows : {1, 2, 3, 8, 16}) {
      for (const RouterScore score : {RouterScore::softmax, RouterScore::sigmoid}) {
        for (const Case& c : {Case{type, n_rows, 2048, 128, 8, score, true, false},
                              Case{type, n_rows, 96, 5, 2, score, false, true},
                              Case{type, n_rows, 2880, 500, 10, score, true, true}}) {
          const Check check(c, how);
          check.scores();
          check.choice();
          check.input();
          check.groups();
        }
      }
    }
  }
}

// A padded width: rows from n_live on are in no group.
TEST_F(RouteTest, PaddedRowsChooseNothing) {
  for (const int n_live : {0, 1, 3, 7}) {
    for (const bool has_shared : {false, true}) {
      const Check check(
          {Type::f32, 8, 2048, 128, 8, RouterScore::softmax, true, has_shared, n_live}, how);
      check.scores();
      check.choice();
      check.groups();
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
