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

// Scores are added in another order, so their last bits are others.
TEST_F(WideTrunkTest, RoutesAsInStepsOf16) {
  const auto near = [](const std::vector<float>& want, const std::vector<float>& got) {
    for (size_t i = 0; i < want.size(); ++i)
      ASSERT_NEAR(want[i], got[i], 0x1p-16f) << "index " << i;
  };
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
    gpu_ops->route(x, model.ffn_norm(0), model.router(0), wide.a, wide.routing);
    each_slice(kRows, [&](int first, int n) {
      gpu_ops->route({x.row(first), n, d}, model.ffn_norm(0), model.router(0),
                     some_rows(narrow.a, first, n), rows_from(narrow.routing, first));
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
