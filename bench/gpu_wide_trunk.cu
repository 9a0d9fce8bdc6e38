// What a layer of a prompt costs on a GPU besides its experts, of the Qwen3-30B-A3B shape. Of 17 to
// 512 rows: what may be done in two ways, both ways, in graphs of twelve layers. Then projections,
// attention over a paged cache of f16, and the router, each alone, for 32 to 8,192 rows; not with
// the argument "few". Prints markdown.
// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <limits>
#include <string_view>

#include "backend/cuda/project.h"
#include "backend/cuda/quantize_rows.h"
#include "backend/cuda/wide_attend.h"
#include "backend/cuda/wide_gemm.h"
#include "backend/cuda/wide_heads.h"
#include "backend/cuda/wide_route.h"
#include "bench_main.h"
#include "gpu_wide.cuh"
#include "graph_timer.cuh"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kModel = 2048, kHeads = 32, kKvHeads = 4, kDim = 128, kExperts = 128, kUsed = 8;
constexpr int kQkv = (kHeads + 2 * kKvHeads) * kDim, kPageShift = 6;

std::vector<float> numbers(size_t n, uint64_t seed, float size) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = size * random_signed(random_bits(seed, i));
  return out;
}

WideAttend attention_of(int n_rows, int first) {
  const auto n = static_cast<size_t>(n_rows);
  const int n_pages = (first + n_rows + 63) >> kPageShift;
  std::vector<int32_t> positions, table;
  for (int r = 0; r < n_rows; ++r) positions.push_back(first + r);
  for (int i = 0; i < n_pages; ++i) table.push_back(n_pages - 1 - i);
  WideAttend p;
  p.of.qkv = device(numbers(n * kQkv, 1, 1.0f));
  p.of.n_rows = n_rows;
  p.of.n_heads = kHeads;
  p.of.n_kv_heads = kKvHeads;
  p.of.head_dim = kDim;
  p.of.head_norm = NormOfHeads::per_head;
  p.of.q_norm = device(std::vector<float>(kDim, 1.0f));
  p.of.k_norm = p.of.q_norm;
  p.of.angles = device(std::vector<float>(n * kDim, 0.7f));
  p.of.n_pairs = kDim / 2;
  p.of.positions = device(positions);
  p.of.sequences = device(std::vector<int32_t>(n, 0));
  p.of.page_table = device(table);
  p.of.table_stride = n_pages;
  p.of.page_shift = kPageShift;
  p.page = kv_page(Type::f16, kKvHeads, kDim, 1 << kPageShift);
  p.of.k = device<uint8_t>(static_cast<size_t>(p.page.page_bytes() * n_pages));
  p.of.v = device<uint8_t>(static_cast<size_t>(p.page.page_bytes() * n_pages));
  p.of.out = device<float>(n * kHeads * kDim);
  p.of.out_int8 = int8_rows(n, kHeads * kDim);
  p.q_eps = p.k_eps = 1e-6f;
  p.queries = device<uint16_t>(static_cast<size_t>(wide_query_halves(n_rows, kHeads, kDim)));
  p.scales = device<float>(n * kHeads);
  return p;
}

WideRoute route_of(int n_rows) {
  const auto n = static_cast<size_t>(n_rows);
  WideRoute p;
  p.of.x = device(numbers(n * kModel, 2, 1.0f));
  p.of.norm = device(std::vector<float>(kModel, 1.0f));
  p.of.eps = 1e-6f;
  p.of.n_rows = n_rows;
  p.of.d_model = kModel;
  p.of.weight = device(numbers(size_t{kExperts} * kModel, 3, 0.05f));
  p.of.n_experts = kExperts;
  p.of.n_used = kUsed;
  p.of.renormalize = true;
  p.of.a = int8_rows(n, kModel);
  p.of.experts = device<int32_t>(n * kUsed);
  p.of.weights = device<float>(n * kUsed);
  p.of.scores = device<float>(n * (kExperts + 1));
  p.weighted = device<float>(n * kModel);
  p.scales = device<float>(n);
  return p;
}

WideGemm product_of(int n_rows, int n_cols, int n_out, const Launch& how) {
  WideGemm p;
  p.type = Type::q4_k;
  p.n_cols = n_cols;
  p.n_out = n_out;
  auto* const weights =
      device<uint8_t>(static_cast<size_t>(n_out) * quant::row_bytes(p.type, n_cols));
  fill_matrices(p.type, n_cols, n_out, 1, weights, 0);
  p.weights[0] = weights;
  p.in = int8_rows(static_cast<size_t>(n_rows), n_cols);
  p.rows.n_rows = n_rows;
  p.height = wide_tile_height(p.type, how);
  p.out = device<float>(static_cast<size_t>(n_rows) * static_cast<size_t>(n_out));
  p.out_stride = n_out;
  return p;
}

// The same by larger tiles.
WideGemm by_blocks(WideGemm p, const Launch& how) {
  p.height = wide_block_height(p.type, p.n_cols, how);
  return p;
}
// What a product leaves.
std::vector<float> result(const WideGemm& p, int n_rows) {
  return copied(p.out, static_cast<size_t>(n_rows) * static_cast<size_t>(p.out_stride));
}

void bench_rows(Timer& time, int n_rows, int first) {
  const Launch how = launch_on(nullptr);
  const WideAttend attention = attention_of(n_rows, first);
  const WideRoute router = route_of(n_rows);
  const WideGemm in = product_of(n_rows, kModel, kQkv, how),
                 out = product_of(n_rows, kHeads * kDim, kModel, how);
  const WideGemm in_blocks = by_blocks(in, how), out_blocks = by_blocks(out, how);
  const QuantizeRows norm{router.of.x, nullptr, router.of.norm, 1e-6f, n_rows, kModel, in.in};
  const double us_norm = time([&] { quantize_rows(norm, how); });
  const double us_in = time([&] { wide_gemm(in, how); });
  const double us_heads = time([&] { wide_heads(attention, how); });
  const double us_attend = time([&] { wide_attend(attention, how); }) - us_heads;
  const double us_out = time([&] { wide_gemm(out, how); });
  const double us_route = time([&] { wide_route(router, how); });
  std::vector<float> want = result(in, n_rows), want_out = result(out, n_rows);
  want.insert(want.end(), want_out.begin(), want_out.end());
  const double us_in_blocks = time([&] { wide_block(in_blocks, how); });
  const double us_out_blocks = time([&] { wide_block(out_blocks, how); });
  std::vector<float> got = result(in, n_rows), got_out = result(out, n_rows);
  got.insert(got.end(), got_out.begin(), got_out.end());
  // Products of queries and keys, and of weights and values, as if each were one.
  const double flop = 4.0 * kHeads * kDim * n_rows * (first + 0.5 * n_rows);
  std::printf("| %d | %d | %.1f | %.0f | %.0f | %.1f | %.0f | %.0f | %.0f | %.0f | %.1f | %s |\n",
              n_rows, first, us_norm, us_in, us_in_blocks, us_heads, us_attend,
              flop / us_attend / 1e6, us_out, us_out_blocks, us_route, compared(want, got).c_str());
  std::fflush(stdout);
}

constexpr int kLayers = 12;  // more weights than L2 holds

// Of some layers, one after the other.
struct Weights {
  Type type;
  int n_cols, n_out;
  size_t bytes = static_cast<size_t>(n_out) * quant::row_bytes(type, n_cols);
  uint8_t* data = made();

  const uint8_t* of(int layer) const { return data + static_cast<size_t>(layer) * bytes; }

 private:
  uint8_t* made() const {
    auto* const at = device<uint8_t>(kLayers * bytes);
    fill_matrices(type, n_cols, n_out, kLayers, at, bytes);
    return at;
  }
};

// Matrices side by side, for n_rows rows: as decode steps do it, and as prompts do.
class TwoWays {
 public:
  TwoWays(GraphTimer& time, int n_rows, const std::vector<Weights>& weights)
      : time_(time), weights_(weights), how_(launch_on(time.stream())) {
    rows_.n_rows = n_rows;
    rows_.n_cols = weights[0].n_cols;
    rows_.in = int8_rows(static_cast<size_t>(n_rows), rows_.n_cols);
    for (const Weights& w : weights) rows_.out_stride += w.n_out;
    rows_.out = device<float>(static_cast<size_t>(n_rows * rows_.out_stride));
  }

  // Microseconds of a layer, and whether both left the same.
  void print() {
    const double us_few = us([this](int layer) { by_sixteen(layer); });
    const auto want = copied(rows_.out, static_cast<size_t>(rows_.n_rows * rows_.out_stride));
    const double us_many = us([this](int layer) { by_blocks(layer); });
    const auto got = copied(rows_.out, want.size());
    std::printf(" %.1f | %.1f | %s |", us_few, us_many, compared(want, got).c_str());
  }

 private:
  template <typename Work>
  double us(const Work& work) {
    return time_([&] {
             for (int layer = 0; layer < kLayers; ++layer) work(layer);
           }) /
           kLayers;
  }
  void by_sixteen(int layer) {
    rows_.n_weights = 0;
    int column = 0;
    for (const Weights& w : weights_) {
      rows_.weights[rows_.n_weights++] = {w.type, w.of(layer), w.n_out, nullptr, column};
      column += w.n_out;
    }
    project_rows(rows_, how_);
  }
  void by_blocks(int layer) const {
    float* out = rows_.out;
    for (const Weights& w : weights_) {
      WideGemm p;
      p.type = w.type;
      p.n_cols = w.n_cols;
      p.n_out = w.n_out;
      p.weights[0] = w.of(layer);
      p.in = rows_.in;
      p.rows.n_rows = rows_.n_rows;
      p.height = wide_block_height(p.type, p.n_cols, how_);
      p.out = out;
      p.out_stride = rows_.out_stride;
      p.begins_beside = out != rows_.out;
      wide_block(p, how_);
      out += w.n_out;
    }
  }

  GraphTimer& time_;
  const std::vector<Weights>& weights_;
  Launch how_;
  ProjectRows rows_;
};

void run_few() {
  GraphTimer time;
  const Launch how = launch_on(time.stream());
  const std::vector<Weights> same = {{Type::q4_k, kModel, kQkv}},
                             mixed = {{Type::q4_k, kModel, kQkv - kKvHeads * kDim},
                                      {Type::q6_k, kModel, kKvHeads * kDim}},
                             output = {{Type::q4_k, kHeads * kDim, kModel}};
  std::printf(
      "| rows | from | attention by warps us | by groups us | q, k, v 16 at a time us | by blocks "
      "us | | v of Q6_K: 16 at a time us | by blocks us | | output 16 at a time us | by blocks us "
      "| |\n|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  const auto bench = [&](int n_rows, int first) {
    WideAttend attention = attention_of(n_rows, first);
    const auto us = [&](const auto& work) {
      return time([&] {
               for (int layer = 0; layer < kLayers; ++layer) work();
             }) /
             kLayers;
    };
    const double us_heads = us([&] { wide_heads(attention, how); });
    attention.least_group_rows = std::numeric_limits<int>::max();
    const double us_warps = us([&] { wide_attend(attention, how); }) - us_heads;
    attention.least_group_rows = 1;
    const double us_groups = us([&] { wide_attend(attention, how); }) - us_heads;
    std::printf("| %d | %d | %.1f | %.1f |", n_rows, first, us_warps, us_groups);
    for (const auto* weights : {&same, &mixed, &output}) TwoWays(time, n_rows, *weights).print();
    std::printf("\n");
    std::fflush(stdout);
  };
  for (const int n_rows : {17, 24, 32, 48, 64, 96, 128, 192, 256, 512}) bench(n_rows, 0);
  for (const int n_rows : {17, 64, 128, 256}) bench(n_rows, 8192);
}

void run_all() {
  run_few();
  std::printf("\n");
  Timer time;
  std::printf(
      "| rows | from | norm us | q, k, v us | by blocks us | heads us | attention us | TFLOP/s | "
      "output us | by blocks us | router us | blocks against the first |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int n_rows : {32, 128, 512, 2048, 8192}) bench_rows(time, n_rows, 0);
  bench_rows(time, 2048, 6144);
  bench_rows(time, 128, 8192);
}

}  // namespace
}  // namespace sluice::backend::cuda

int main(int argc, char** argv) {
  return sluice::bench::bench_main([&] {
    const bool is_few = argc > 1 && std::string_view(argv[1]) == "few";
    is_few ? sluice::backend::cuda::run_few() : sluice::backend::cuda::run_all();
    return 0;
  });
}
