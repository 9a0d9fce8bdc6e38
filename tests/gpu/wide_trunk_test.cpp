// The trunk's operations of more than 16 rows: projections equal to the CPU's in every bit, and the
// router equal to the same rows in steps of 16. Attention: wide_attend_test.cpp.
// SPDX-License-Identifier: Apache-2.0
#include "backend/mailbox.h"
#include "gpu/ops_test.h"

namespace sluice::backend::cuda::test {
namespace {

constexpr int kSlice = 16;

class WideTrunkTest : public OpsTest {
 protected:
  template <typename T>
  std::vector<T> read(const T* at, int64_t n) {
    stream->finish();
    return gpu->get(at, count(n));
  }
  std::vector<float> read(const RowsView& v) { return read(v.data, v.n_rows * v.n_cols); }

  // slice(first, n) for all rows.
  template <typename Slice>
  static void each_slice(int n_rows, const Slice& slice) {
    for (int first = 0; first < n_rows; first += kSlice) {
      slice(first, std::min(kSlice, n_rows - first));
    }
  }
};

TEST_F(WideTrunkTest, AddsProjectionsAsTheCpu) {
  for (const Type type : woven_types()) {
    const int n_cols = quant::type_info(type).block_elems == 256 ? 768 : 352, n_out = 152;
    for (const int n_rows : {17, 33, 48, 49, 64, 65, 200}) {
      const auto run = [&](Side& side, Ops& ops) {
        const Projection w{woven_weight(side, type, n_cols, n_out, 3),
                           side.put(random_values(n_out, 4))};
        const RowsView x = rows(side, n_rows, n_out, 6);
        ops.project_add(rows(side, n_rows, n_cols, 5), w, x);
        return x;
      };
      const RowsView want = run(host, *cpu_ops), got = run(*gpu, *gpu_ops);
      expect_same_bits(std::span(want.data, count(n_rows * n_out)), read(got),
                       cat(quant::type_name(type), ", ", n_rows, " rows"));
    }
  }
}

TEST_F(WideTrunkTest, ProjectsAsInStepsOf16) {
  constexpr int kCols = 512;
  const std::vector<std::pair<int, bool>> cases = {{17, true}, {25, false}, {32, true},
                                                   {33, true}, {70, false}, {70, true}};
  for (const auto& [n_rows, has_bias] : cases) {
    const auto bias = [&](size_t n) { return has_bias ? gpu->put(random_values(n, 50)) : nullptr; };
    const std::vector<Projection> weights = {
        {woven_weight(*gpu, Type::q4_k, kCols, 256, 9), bias(256)},
        {woven_weight(*gpu, Type::q4_k, kCols, 64, 10), bias(64)},
        {woven_weight(*gpu, Type::q6_k, kCols, 72, 11), bias(72)}};
    const NormView norm{gpu->put(norm_weights(kCols, 7)), 1e-6f};
    const RowsView x = rows(*gpu, n_rows, kCols, 8), wide = rows(*gpu, n_rows, 392, 12),
                   narrow = rows(*gpu, n_rows, 392, 13);
    gpu_ops->project_in(x, norm, weights, wide);
    each_slice(n_rows, [&](int first, int n) {
      gpu_ops->project_in({x.row(first), n, kCols}, norm, weights, {narrow.row(first), n, 392});
    });
    expect_same_bits(read(narrow), read(wide),
                     cat(n_rows, has_bias ? " rows with bias" : " rows without bias"));
  }
}

// By how much the weights of experts may differ whose scores are added up in two orders.
//
// A wide step's score is a sum of floats: 8 of a lane at most (two segments of a warp), 5 over the
// lanes, 8 of the warps, and the scale. A narrow one's has 4 for four columns, then integers, each
// off by 2^-37 at most, one to be a float and the scale. Each of these 28 errs by 2^-24 of what the
// products' magnitudes add up to, for the worst row and expert. A softmax or sigmoid moves by no
// more than half of what scores differ (2 p (1 - p)), and is itself computed within 2^-20.
double weight_bound(const std::vector<float>& x, const std::vector<float>& norm,
                    const std::vector<float>& router) {
  const size_t d = norm.size();
  double most = 0, most_scale = 0;
  for (size_t r = 0; r < x.size(); r += d) {
    double squares = 0;
    for (size_t i = 0; i < d; ++i) squares += double{x[r + i]} * x[r + i];
    const double scale = 1 / std::sqrt(squares / static_cast<double>(d));
    most_scale = std::max(most_scale, scale);
    for (size_t e = 0; e < router.size(); e += d) {
      double size = 0;
      for (size_t i = 0; i < d; ++i) size += std::abs(double{router[e + i]} * norm[i] * x[r + i]);
      most = std::max(most, scale * size);
    }
  }
  const double fours = 0x1p-37 * static_cast<double>(d) / 4 * most_scale;
  return (28 * 0x1p-24 * most + fours) / 2 + 0x1p-20;
}

TEST_F(WideTrunkTest, RoutesAsInStepsOf16) {
  for (const bool is_odd : {false, true}) {
    const TinyShape shape = is_odd ? odd_shape() : TinyShape{};
    TinyModel model(shape, *gpu);
    constexpr int kRows = 45;
    const int64_t d = shape.d_model;
    const RowsView x = rows(*gpu, kRows, d, 30);
    std::vector<int32_t> forced(count(kRows * kUsed), -1);
    forced[0] = 4, forced.back() = 3;
    const int32_t* const given = gpu->put(forced);
    struct Routed {
      RoutingView routing;
      ExpertInputView a;
    };
    const auto room = [&] {
      return Routed{
          {kUsed, gpu->put(std::vector<int32_t>(forced.size(), -7)),
           gpu->put(std::vector<float>(forced.size())), gpu->put(std::vector<float>(kRows)), given},
          {kRows, d, nullptr, gpu->put(std::vector<int8_t>(count(kRows * d))),
           gpu->put(std::vector<float>(count(kRows * d / 32))),
           gpu->put(std::vector<float>(count(kRows * d / 32)))}};
    };
    const Routed wide = room(), narrow = room();
    const NormView norm = model.ffn_norm(0);
    const RouterView router = model.router(0);
    std::vector<float> scored =
        read(reinterpret_cast<const float*>(router.weight.data), int64_t{shape.n_experts} * d);
    if (router.shared_gate) {
      const auto gate = read(router.shared_gate, d);
      scored.insert(scored.end(), gate.begin(), gate.end());
    }
    const double bound = weight_bound(read(x), read(norm.weight, d), scored);
    EXPECT_LT(bound, 0x1p-12) << "the bound shows nothing";
    const auto near = [&](const std::vector<float>& want, const std::vector<float>& got) {
      for (size_t i = 0; i < want.size(); ++i) {
        ASSERT_NEAR(want[i], got[i], bound) << "index " << i;
      }
    };
    gpu_ops->route(x, norm, router, wide.a, wide.routing);
    each_slice(kRows, [&](int first, int n) {
      gpu_ops->route({x.row(first), n, d}, norm, router, some_rows(narrow.a, first, n),
                     rows_from(narrow.routing, first));
    });
    const auto n = static_cast<int64_t>(forced.size());
    EXPECT_EQ(read(narrow.routing.experts, n), read(wide.routing.experts, n));
    EXPECT_EQ(read(wide.routing.experts, n).front(), 4);
    EXPECT_EQ(read(wide.routing.experts, n).back(), 3);
    near(read(narrow.routing.weights, n), read(wide.routing.weights, n));
    near(read(narrow.routing.shared_weights, kRows), read(wide.routing.shared_weights, kRows));
    EXPECT_EQ(read(narrow.a.q, kRows * d), read(wide.a.q, kRows * d));
    EXPECT_EQ(read(narrow.a.d, kRows * d / 32), read(wide.a.d, kRows * d / 32));
    EXPECT_EQ(read(narrow.a.y, kRows * d / 32), read(wide.a.y, kRows * d / 32));
  }
}

}  // namespace
}  // namespace sluice::backend::cuda::test
