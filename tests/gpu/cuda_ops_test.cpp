// Each operation of a GPU's stream against the CPU's, with the same bytes: equal in every bit where
// the numeric contract says so, for 1 to 16 rows and rows that are no whole chunks; and what GPUs
// do not do yet is told. (More rows: wide_*_test.cpp. Whole models: cuda_model_test.cpp. Kernels
// alone: the other tests here. Recordings and streams: cuda_ops_order_test.cpp.)
// SPDX-License-Identifier: Apache-2.0
#include "base/units.h"
#include "gpu/ops_test.h"
#include "quant/half.h"
#include "support/error_of.h"

namespace sluice::backend::cuda::test {
namespace {

TEST_F(CudaOpsTest, EmbedsAsTheCpu) {
  constexpr int kCols = 96, kTokens = 40;
  const std::vector<float> values = random_values(size_t{kCols} * kTokens, 1);
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    std::vector<uint16_t> bits;
    for (const float v : values) {
      bits.push_back(type == Type::f16 ? quant::f32_to_f16(v) : quant::f32_to_bf16(v));
    }
    TinyStep step{};
    step.n_live = 3;
    step.tokens[0] = 39, step.tokens[1] = 0, step.tokens[2] = 17;
    std::vector<std::vector<float>> out;
    for (Side* side : {&host, gpu.get()}) {
      const auto bytes = type == Type::f32 ? std::as_bytes(std::span<const float>(values))
                                           : std::as_bytes(std::span<const uint16_t>(bits));
      const WeightView table{type, side->put(bytes), kCols, kTokens};
      const auto* const at =
          reinterpret_cast<const TinyStep*>(side->put(std::as_bytes(std::span(&step, 1))));
      const RowsView x = rows(*side, 4, kCols, 2);  // the last one is padding, and stays
      Ops& ops = side == &host ? *cpu_ops : *gpu_ops;
      ops.embed(table, TinyStep::view(at, 4), x);
      out.push_back(read(*side, x));
    }
    expect_same_bits(out[0], out[1], std::string(quant::type_name(type)));
  }
}

TEST_F(CudaOpsTest, AddsProjectionsAsTheCpu) {
  for (const Type type : {Type::q4_k, Type::q6_k, Type::q8_0, Type::f32, Type::f16, Type::bf16}) {
    for (const int n_rows : {1, 3, 16}) {
      const bool is_float = quant::is_float(type);
      const int n_cols = is_float ? 77 : type == Type::q8_0 ? 96 : 512, n_out = is_float ? 61 : 64;
      std::vector<std::vector<float>> out;
      for (Side* side : {&host, gpu.get()}) {
        const Projection w{woven_weight(*side, type, n_cols, n_out, 3),
                           side->put(random_values(count(n_out), 4))};
        const RowsView in = rows(*side, n_rows, n_cols, 5), x = rows(*side, n_rows, n_out, 6);
        Ops& ops = side == &host ? *cpu_ops : *gpu_ops;
        ops.project_add(in, w, x);
        out.push_back(read(*side, x));
      }
      expect_same_bits(out[0], out[1], std::string(quant::type_name(type)));
    }
  }
}

// The norm is the device's own (its order of sums); what follows is the CPU's, in every bit.
TEST_F(CudaOpsTest, ProjectsAndGivesLogitsOfItsNormAsTheCpu) {
  constexpr int kCols = 256;
  for (const int n_rows : {1, 5, 16}) {
    const std::vector<float> norm = norm_weights(kCols, 7);
    const RowsView x = rows(*gpu, n_rows, kCols, 8);
    const std::vector<float> values = read(*gpu, x);
    std::vector<float> normed;
    for (int r = 0; r < n_rows; ++r) {
      const auto row = device_norm(std::span(values).subspan(count(r * kCols), kCols), norm, 1e-6f);
      normed.insert(normed.end(), row.begin(), row.end());
    }
    const NormView norm_view{gpu->put(norm), 1e-6f};
    const auto want = [&](Type type, int n_out, uint64_t seed) {
      const RowsView in{host.put(normed), n_rows, kCols};
      const RowsView sum{host.put(std::vector<float>(count(n_rows * n_out))), n_rows, n_out};
      cpu_ops->project_add(in, {woven_weight(host, type, kCols, n_out, seed), nullptr}, sum);
      return read(host, sum);
    };
    const std::vector<Projection> weights = {
        {woven_weight(*gpu, Type::q4_k, kCols, 64, 9), nullptr},
        {woven_weight(*gpu, Type::q6_k, kCols, 32, 10), nullptr}};
    const RowsView out = rows(*gpu, n_rows, 96, 11);
    gpu_ops->project_in(x, norm_view, weights, out);
    const auto q = want(Type::q4_k, 64, 9), v = want(Type::q6_k, 32, 10), got = read(*gpu, out);
    for (int r = 0; r < n_rows; ++r) {
      const auto row = std::span(got).subspan(count(r * 96), 96);
      expect_same_bits(std::span(q).subspan(count(r * 64), 64), row.first(64), "first weight");
      expect_same_bits(std::span(v).subspan(count(r * 32), 32), row.last(32), "second weight");
    }
    // Of the last row first; what is not wanted is not asked for.
    TinyStep step{};
    step.n_logits = n_rows;
    for (int i = 0; i < n_rows; ++i) step.logit_rows[i] = n_rows - 1 - i;
    for (int i = n_rows; i < kWidest; ++i) step.logit_rows[i] = 1'000'000'000;
    const auto* const at =
        reinterpret_cast<const TinyStep*>(gpu->put(std::as_bytes(std::span(&step, 1))));
    const RowsView logits = rows(*gpu, kWidest, kVocab, 12);
    gpu_ops->logits(x, TinyStep::view(at, n_rows), 0, norm_view,
                    woven_weight(*gpu, Type::q6_k, kCols, kVocab, 13), logits);
    const auto all = want(Type::q6_k, kVocab, 13), wanted = read(*gpu, logits);
    for (int r = 0; r < n_rows; ++r) {
      expect_same_bits(std::span(all).subspan(count(r) * kVocab, kVocab),
                       std::span(wanted).subspan(count(n_rows - 1 - r) * kVocab, kVocab), "logits");
    }
  }
}

// Shapes of experts: plain ones, and all kinds of differences between the types of their matrices.
std::vector<std::pair<std::string, TinyShape>> expert_shapes() {
  std::vector<std::pair<std::string, TinyShape>> all = {{"plain", {}}, {"odd", odd_shape()}};
  const auto add = [&](std::string name, const std::function<void(TinyShape&)>& change) {
    change(all.emplace_back(std::move(name), TinyShape{}).second);
  };
  add("up", [](TinyShape& s) { s.up = Type::q6_k; });
  add("shared gate", [](TinyShape& s) { s.shared_gate = Type::q8_0; });
  add("shared up", [](TinyShape& s) { s.shared_up = Type::q5_k; });
  add("shared down", [](TinyShape& s) { s.shared_down = Type::q4_0; });
  add("shared floats",
      [](TinyShape& s) { s.shared_gate = s.shared_up = s.shared_down = Type::f32; });
  add("no shared", [](TinyShape& s) { s.up = Type::q3_k, s.shared_d_ff = 0; });
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    add(std::string(quant::type_name(type)), [type](TinyShape& s) { s.gate_up = s.down = type; });
    add(cat(quant::type_name(type), " down"), [type](TinyShape& s) { s.down = type; });
    add(cat(quant::type_name(type), " gate and up"), [type](TinyShape& s) { s.gate_up = type; });
  }
  return all;
}

// Experts that many rows share, that one row has twice (forced experts may), and a shared one.
TEST_F(CudaOpsTest, ComputesExpertsAsTheCpu) {
  for (const auto& [name, shape] : expert_shapes()) {
    TinyModel on_host(shape, host), on_gpu(shape, *gpu);
    for (const int n_rows : {1, 3, 16}) {
      std::vector<int32_t> chosen;
      for (int i = 0; i < n_rows * kUsed; ++i) chosen.push_back(i % 5 == 0 ? 2 : (i * 3) % 5);
      if (n_rows == 16) std::ranges::fill(chosen, 1);  // 32 pairs of one expert
      chosen[1] = chosen[0];
      std::vector<std::vector<float>> out;
      for (TinyModel* model : {&on_host, &on_gpu}) {
        Side& side = model == &on_host ? host : *gpu;
        const int64_t d = shape.d_model;
        const RoutingView routing{kUsed, side.put(chosen),
                                  side.put(random_values(chosen.size(), 21)),
                                  side.put(random_values(count(n_rows), 22))};
        const RowsView x = rows(side, n_rows, d, 23);
        Ops& ops = model == &on_host ? *cpu_ops : *gpu_ops;
        ops.experts(model->experts(0), expert_rows(side, n_rows, d), routing, x);
        out.push_back(read(side, x));
      }
      expect_same_bits(out[0], out[1], cat(name, ", ", n_rows, " rows"));
    }
  }
}

// Float weights, beside quantised ones; the norm of float inputs is the CPU's, in every bit.
TEST_F(CudaOpsTest, ProjectsFloatWeightsAsTheCpu) {
  constexpr int kOdd = 261;
  struct Case {
    Type type;
    int n_rows, n_cols, n_out;
  };
  // Few outputs have a kernel of their own, and so have many.
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    for (const Case c : {Case{type, 1, 96, 40}, Case{type, 5, 96, 40}, Case{type, 16, 96, 40},
                         Case{type, 1, 2048, 42}, Case{type, 3, 160, 40}, Case{type, 2, 96, 300}}) {
      const int n_rows = c.n_rows, n_cols = c.n_cols, n_out = c.n_out;
      std::vector<std::vector<float>> out, logits;
      for (Side* side : {&host, gpu.get()}) {
        Ops& ops = side == &host ? *cpu_ops : *gpu_ops;
        const NormView norm{side->put(norm_weights(count(n_cols), 7)), 1e-6f};
        const std::vector<Projection> weights = {
            {woven_weight(*side, type, n_cols, n_out, 9),
             side->put(random_values(count(n_out), 10))},
            {woven_weight(*side, Type::f32, n_cols, 24, 11), nullptr}};
        const RowsView x = rows(*side, n_rows, n_cols, 8), y = rows(*side, n_rows, n_out + 24, 12);
        ops.project_in(x, norm, weights, y);
        out.push_back(read(*side, y));
        TinyStep step{};
        step.n_logits = n_rows;
        for (int i = 0; i < n_rows; ++i) step.logit_rows[i] = n_rows - 1 - i;
        const auto* const at =
            reinterpret_cast<const TinyStep*>(side->put(std::as_bytes(std::span(&step, 1))));
        const RowsView all = rows(*side, n_rows, kOdd, 13);
        ops.logits(x, TinyStep::view(at, n_rows), 0, norm,
                   woven_weight(*side, type, n_cols, kOdd, 14), all);
        logits.push_back(read(*side, all));
      }
      expect_same_bits(out[0], out[1],
                       cat(quant::type_name(type), ", ", n_rows, " rows of ", n_cols));
      expect_same_bits(logits[0], logits[1], cat("logits of ", quant::type_name(type)));
    }
  }
}

// A quantised weight beside a float one gives what it gives alone.
TEST_F(CudaOpsTest, ProjectsQuantisedAndFloatWeightsSideBySide) {
  constexpr int kCols = 256;
  const NormView norm{gpu->put(norm_weights(kCols, 7)), 1e-6f};
  const Projection q{woven_weight(*gpu, Type::q4_k, kCols, 64, 9), nullptr};
  const Projection f{woven_weight(*gpu, Type::f16, kCols, 40, 10), nullptr};
  for (const int n_rows : {1, 5, 16}) {
    const RowsView x = rows(*gpu, n_rows, kCols, 8);
    const auto project = [&](const std::vector<Projection>& weights, int64_t n_out) {
      const RowsView y = rows(*gpu, n_rows, n_out, 12);
      gpu_ops->project_in(x, norm, weights, y);
      return read(*gpu, y);
    };
    const auto alone = project({q}, 64), other = project({f}, 40), both = project({f, q}, 104);
    for (int r = 0; r < n_rows; ++r) {
      const auto row = std::span(both).subspan(count(r * 104), 104);
      expect_same_bits(std::span(other).subspan(count(r * 40), 40), row.first(40), "float");
      expect_same_bits(std::span(alone).subspan(count(r * 64), 64), row.last(64), "quantised");
    }
  }
}

// The rows of a vocabulary that is no multiple of eight are those of the whole one.
TEST_F(CudaOpsTest, GivesLogitsOfAnyVocabulary) {
  constexpr int kCols = 256, kOdd = 261, kWhole = 264;
  const size_t row = quant::row_bytes(Type::q6_k, kCols);
  std::vector<std::byte> plain(kWhole * row), woven(plain.size());
  quant::random_row_blocks(Type::q6_k, 13, 0, kWhole, 0.1f, plain.data());
  std::fill(plain.begin() + static_cast<std::ptrdiff_t>(kOdd * row), plain.end(), std::byte{});
  for (size_t at = 0; at < plain.size(); at += 8 * row) {
    quant::weave_rows(Type::q6_k, kCols, plain.data() + at, woven.data() + at);
  }
  const WeightView whole{Type::q6_k, gpu->put(woven), kCols, kWhole, 1, quant::Layout::stripes};
  plain.resize(kOdd * row);
  const WeightView odd{Type::q6_k, gpu->put(plain), kCols, kOdd};
  const NormView norm{gpu->put(norm_weights(kCols, 7)), 1e-6f};
  for (const int n_rows : {1, 5, 16}) {
    const RowsView x = rows(*gpu, n_rows, kCols, 8);
    TinyStep step{};
    step.n_logits = n_rows;
    for (int i = 0; i < n_rows; ++i) step.logit_rows[i] = i;
    const auto* const at =
        reinterpret_cast<const TinyStep*>(gpu->put(std::as_bytes(std::span(&step, 1))));
    const auto logits = [&](const WeightView& w) {
      const RowsView out = rows(*gpu, n_rows, w.n_rows, 12);
      gpu_ops->logits(x, TinyStep::view(at, n_rows), 0, norm, w, out);
      return read(*gpu, out);
    };
    for (int again = 0; again < 2; ++again) {
      const auto want = logits(whole), got = logits(odd);
      for (int r = 0; r < n_rows; ++r) {
        expect_same_bits(std::span(want).subspan(count(r * kWhole), kOdd),
                         std::span(got).subspan(count(r * kOdd), kOdd), "logits");
      }
    }
  }
}

// Choices as the CPU's, forced ones included; the experts' input is that of the device's own norm.
TEST_F(CudaOpsTest, RoutesAsTheCpu) {
  for (const bool is_odd : {false, true}) {
    const TinyShape shape = is_odd ? odd_shape() : TinyShape{};
    TinyModel on_host(shape, host), on_gpu(shape, *gpu);
    const int64_t d = shape.d_model;
    for (const int n_rows : {1, 3, 16}) {
      std::vector<int32_t> forced(count(n_rows * kUsed), -1);
      forced.back() = 4;
      struct Got {
        std::vector<int32_t> experts;
        std::vector<float> weights;
        std::vector<int8_t> q;
        std::vector<float> d, y;
      };
      std::vector<Got> got;
      for (TinyModel* model : {&on_host, &on_gpu}) {
        Side& side = model == &on_host ? host : *gpu;
        const ExpertInputView a{n_rows,
                                d,
                                nullptr,
                                side.put(std::vector<int8_t>(count(n_rows * d))),
                                side.put(std::vector<float>(count(n_rows * d / 32))),
                                side.put(std::vector<float>(count(n_rows * d / 32)))};
        const RoutingView routing{kUsed, side.put(std::vector<int32_t>(forced.size())),
                                  side.put(std::vector<float>(forced.size())),
                                  side.put(std::vector<float>(count(n_rows))), side.put(forced)};
        Ops& ops = model == &on_host ? *cpu_ops : *gpu_ops;
        ops.route(rows(side, n_rows, d, 30), model->ffn_norm(0), model->router(0), a, routing);
        if (&side == gpu.get()) stream->finish();
        got.push_back({side.get(routing.experts, forced.size()),
                       side.get(routing.weights, forced.size()), side.get(a.q, count(n_rows * d)),
                       side.get(a.d, count(n_rows * d / 32)),
                       side.get(a.y, count(n_rows * d / 32))});
      }
      EXPECT_EQ(got[0].experts, got[1].experts);
      EXPECT_EQ(got[1].experts.back(), 4);
      for (size_t i = 0; i < forced.size(); ++i) {
        EXPECT_NEAR(got[0].weights[i], got[1].weights[i], 1e-5);
      }
      const auto x = random_values(count(n_rows * d), 30);
      const auto norm = gpu->get(on_gpu.ffn_norm(0).weight, count(d));
      for (int r = 0; r < n_rows; ++r) {
        const auto row = device_norm(std::span(x).subspan(count(r * d), count(d)), norm, 1e-6f);
        std::vector<int8_t> q(count(d));
        std::vector<float> scales(count(d / 32)), sums(scales.size());
        quant::quantize_activation(row, q.data(), scales.data(), sums.data());
        const auto at = count(r * d);
        EXPECT_TRUE(std::ranges::equal(q, std::span(got[1].q).subspan(at, count(d)))) << r;
        expect_same_bits(scales, std::span(got[1].d).subspan(at / 32, count(d / 32)), "scales");
        expect_same_bits(sums, std::span(got[1].y).subspan(at / 32, count(d / 32)), "sums");
      }
    }
  }
}

// Rows of logits in many orders, with ties.
std::vector<float> awkward_logits(int row, int n) {
  std::vector<float> v = random_values(count(n), static_cast<uint64_t>(row) + 50);
  for (int i = 0; i < n; ++i) {
    float& x = v[count(i)];
    if (row == 1) x = static_cast<float>(i);  // each better than all before
    if (row == 2) x = i % 3 == 0 ? -0.0f : i % 3 == 1 ? 0.0f : -1.0f;  // zeros are equal
    if (row == 3) x = -1.0f;                                           // one value
    // Few threads have all that are good, so more are above the bound than there is room for.
    if (row == 4 && i % 1024 < 200) x += 100.0f;
    if (row == 5) x = static_cast<float>(-i);
    if (row == 8) x = std::round(x);
  }
  if (row == 6) v[count(n / 2)] = std::nanf("");
  if (row == 7) v[count(n - 1)] = -INFINITY;
  return v;
}

TEST_F(CudaOpsTest, PicksAsTheCpu) {
  constexpr int kRows = 10, kWanted = 11, kFirst = 2;  // so the last one is not wanted
  for (const int n_cols : {1, 5, 1000, 1024, 5000, 151'936}) {
    std::vector<float> logits;
    for (int r = 0; r < kRows; ++r) {
      const auto row = awkward_logits(r, n_cols);
      logits.insert(logits.end(), row.begin(), row.end());
    }
    for (const int n_best : {0, 1, 2, 40, 256}) {
      TinyStep step{};
      step.n_logits = kWanted;
      step.n_best = n_best;
      std::vector<PickedRow> want(kRows);
      std::memset(static_cast<void*>(want.data()), 0x55, sizeof(PickedRow) * kRows);
      const Buffer got = device->allocate(MemoryKind::mapped, sizeof(PickedRow) * kRows);
      std::memset(got.data(), 0x55, got.n_bytes());
      cpu_ops->pick({logits.data(), kRows, n_cols}, TinyStep::view(&step, kWidest), kFirst,
                    want.data());
      const auto* const at =
          reinterpret_cast<const TinyStep*>(gpu->put(std::as_bytes(std::span(&step, 1))));
      gpu_ops->pick({gpu->put(logits), kRows, n_cols}, TinyStep::view(at, kWidest), kFirst,
                    got.as<PickedRow>());
      stream->finish();
      for (int r = 0; r < kRows; ++r) {
        const PickedRow &w = want[count(r)], &g = got.as<PickedRow>()[r];
        const std::string what = cat("row ", r, " of ", n_cols, ", best ", n_best);
        ASSERT_EQ(w.is_finite, g.is_finite) << what;
        ASSERT_EQ(w.n_best, g.n_best) << what;
        // Of a row that is not finite the CPU may have written some; of others, what is behind the
        // best stays.
        for (int i = 0; w.is_finite && i < kMaxBest; ++i) {
          ASSERT_EQ(w.best[i].token, g.best[i].token) << what << ", place " << i;
          ASSERT_EQ(std::bit_cast<uint32_t>(w.best[i].logit),
                    std::bit_cast<uint32_t>(g.best[i].logit))
              << what << ", place " << i;
        }
      }
    }
  }
}

TEST_F(CudaOpsTest, TellsWhatGpusDoNotDoYet) {
  const RowsView few = rows(*gpu, 2, 96, 40);
  const NormView norm{gpu->put(norm_weights(96, 41)), 1e-6f};
  const Projection woven{woven_weight(*gpu, Type::q8_0, 96, 96, 42), nullptr};
  const std::vector<Projection> five(5, woven);
  const RowsView side_by_side = rows(*gpu, 2, 5 * 96, 43);
  const std::string words = "stream 'main': CUDA: 5 projections at once; four at most";
  EXPECT_EQ(fault([&] { gpu_ops->project_in(few, norm, five, side_by_side); }), words);
  stream->begin_recording();
  gpu_ops->project_in(few, norm, five, side_by_side);
  EXPECT_EQ(sluice::test::error_of(Errc::device, [&] { stream->end_recording(); }), words);
  gpu_ops->project_add(few, woven, few);
  EXPECT_NO_THROW(stream->finish());
}

}  // namespace
}  // namespace sluice::backend::cuda::test
