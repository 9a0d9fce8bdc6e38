// What the experts of a prompt cost on a GPU: one layer of the Qwen3-30B-A3B shape (128 experts, 8
// of a row), all resident, for 32 to 4,096 rows with uneven routing; each kernel alone, tokens/s of
// 48 such layers, and the share of int8 products by tensor cores measured in the same run. By each
// kernel of wide products, whose results are compared bit by bit. Prints markdown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/wide_block.cuh"
#include "backend/cuda/wide_experts.h"
#include "base/random.h"
#include "bench_main.h"
#include "gpu_wide.cuh"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kLayers = 48, kModel = 2048, kFf = 768, kExperts = 128, kUsed = 8;

// Eight products of 16 x 8 x 32 at a time, from registers alone.
__global__ void __launch_bounds__(256) int8_products_kernel(int n, int* out) {
  int c[8][4] = {};
  const unsigned a = threadIdx.x, b = threadIdx.x * 7u;
  for (int i = 0; i < n; ++i) {
#pragma unroll
    for (auto& v : c) {
      asm volatile(
          "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%4,%4,%4}, {%5,%5}, "
          "{%0,%1,%2,%3};"
          : "+r"(v[0]), "+r"(v[1]), "+r"(v[2]), "+r"(v[3])
          : "r"(a), "r"(b));
    }
  }
  int sum = 0;
  for (const auto& v : c) sum += v[0] ^ v[1] ^ v[2] ^ v[3];
  if (sum == 0x12345678) *out = sum;
}

// kUsed of kExperts for each row, by popularity as uneven as text's (log-normal, sigma 0.5).
std::vector<int32_t> choices(int n_rows) {
  const auto uniform = [](uint64_t seed, uint64_t i) {
    return 0.5f + 0.49999f * random_signed(random_bits(seed, i));
  };
  std::vector<float> popularity;
  for (uint64_t e = 0; e < kExperts; ++e) {
    float sum = 0;
    for (uint64_t k = 0; k < 12; ++k) sum += uniform(1, 12 * e + k);
    popularity.push_back(0.5f * (sum - 6.0f));
  }
  std::vector<int32_t> out;
  for (int r = 0; r < n_rows; ++r) {
    std::vector<std::pair<float, int32_t>> order;
    for (int e = 0; e < kExperts; ++e) {
      const float u = uniform(2, static_cast<uint64_t>(r * kExperts + e));
      order.push_back({-(popularity[static_cast<size_t>(e)] - std::log(-std::log(u))), e});
    }
    std::ranges::partial_sort(order, order.begin() + kUsed);
    for (int k = 0; k < kUsed; ++k) out.push_back(order[static_cast<size_t>(k)].second);
  }
  return out;
}

// A kernel of wide products.
struct Kernel {
  const char* name;
  int (*height)(Type type, const Launch& how);
  void (*run)(const WideGemm& p, const Launch& how);
};

Kernel old_kernel() { return {"one pair a warp", wide_tile_height, wide_gemm}; }

Kernel block_kernel() {
  return {"block",
          [](Type type, const Launch& how) { return wide_block_height(type, kModel, how); },
          wide_block};
}

// Other tiles of the block kernel, for Q4_K and Q6_K.
template <typename Tile>
Kernel block_variant(const char* name) {
  return {name,
          [](Type type, const Launch& how) {
            return type == Type::q6_k ? block_height<Type::q6_k, Tile>(how)
                                      : block_height<Type::q4_k, Tile>(how);
          },
          [](const WideGemm& p, const Launch& how) {
            p.type == Type::q6_k ? run_block<Type::q6_k, Tile>(p, how)
                                 : run_block<Type::q4_k, Tile>(p, how);
          }};
}

// What the kernels of a layer are asked for; the height of tiles is still to be set.
struct Layer {
  int n_rows;
  SortPairs sort;
  CutTiles cut;
  WideGemm up, down;
  SumPairs sum;
};
constexpr int kLeastHeight = 16;

Layer make_layer(Type gate_up, Type down_type, int n_rows) {
  const size_t up_at = size_t{kFf} * quant::row_bytes(gate_up, kModel), down_at = 2 * up_at;
  const size_t stride =
      (down_at + size_t{kModel} * quant::row_bytes(down_type, kFf) + 255) / 256 * 256;
  uint8_t* const slots = device<uint8_t>(kExperts * stride);
  fill_matrices(gate_up, kModel, kFf, kExperts, slots, stride);
  fill_matrices(gate_up, kModel, kFf, kExperts, slots + up_at, stride);
  fill_matrices(down_type, kFf, kModel, kExperts, slots + down_at, stride);
  std::vector<const uint8_t*> table;
  for (size_t e = 0; e < kExperts; ++e) table.push_back(slots + e * stride);

  const int n_slots = n_rows * kUsed, most = most_tiles(n_slots, kExperts, kLeastHeight);
  const auto n = static_cast<size_t>(n_slots);
  Layer layer{n_rows};
  SortPairs& sort = layer.sort;
  sort.experts = device(choices(n_rows));
  sort.n_slots = n_slots;
  sort.n_experts = kExperts;
  sort.first = device<int32_t>(kExperts + 1);
  sort.slots = device<int32_t>(n);
  layer.cut = {
      sort.first,        device(table), kExperts, 0, device<WideTile>(static_cast<size_t>(most)),
      device<int32_t>(1)};
  WideGemm &up = layer.up, &down = layer.down;
  up.type = gate_up;
  up.n_cols = kModel;
  up.n_out = kFf;
  up.weights_at[1] = static_cast<int64_t>(up_at);
  up.in = int8_rows(static_cast<size_t>(n_rows), kModel);
  up.rows = {layer.cut.tiles, layer.cut.n_tiles, most, sort.slots, kUsed};
  up.h = int8_rows(n, kFf);
  down.type = down_type;
  down.n_cols = kFf;
  down.n_out = kModel;
  down.weights_at[0] = static_cast<int64_t>(down_at);
  down.in = up.h;
  down.rows = up.rows;
  down.rows.slots_per_row = 1;
  down.out = device<float>(n * kModel);
  down.out_stride = kModel;
  layer.sum = {down.out,
               device(std::vector<float>(n, 0.1f)),
               nullptr,
               n_rows,
               kUsed,
               kModel,
               device<float>(static_cast<size_t>(n_rows) * kModel)};
  return layer;
}

// Returns what the layer adds to its rows; want: the same of another kernel, or nothing.
std::vector<float> bench_layer(Timer& time, double peak, Layer layer, const Kernel& kernel,
                               const std::vector<float>& want) {
  const Launch how = launch_on(nullptr);
  auto& [n_rows, sort, cut, up, down, sum] = layer;
  const auto n_slots = static_cast<size_t>(sort.n_slots);
  cut.height = up.height = down.height =
      std::min(kernel.height(up.type, how), kernel.height(down.type, how));
  // What another kernel left must not be taken for this one's.
  CHECK_CUDA(cudaMemset(up.h.q, 0, n_slots * 256 * static_cast<size_t>(up.h.n_chunks)));
  CHECK_CUDA(cudaMemset(down.out, 0, n_slots * kModel * sizeof(float)));
  const double us_sort = time([&] { sort_pairs(sort, how); });
  const double us_cut = time([&] { cut_tiles(cut, how); });
  const double us_up = time([&] { kernel.run(up, how); });
  const double us_down = time([&] { kernel.run(down, how); });
  const double us_sum = time([&] { sum_pairs(sum, how); });
  const double us = time([&] {
    sort_pairs(sort, how);
    cut_tiles(cut, how);
    kernel.run(up, how);
    kernel.run(down, how);
    sum_pairs(sum, how);
  });
  CHECK_CUDA(cudaMemset(sum.x, 0, static_cast<size_t>(n_rows) * kModel * sizeof(float)));
  sum_pairs(sum, how);
  std::vector<float> out = copied(sum.x, static_cast<size_t>(n_rows) * kModel);
  const auto share = [&](double n_matrices, double us_of) {
    const double products = static_cast<double>(n_slots) * kModel * kFf * n_matrices;
    return 100 * 2.0 * products / us_of / 1e6 / peak;
  };
  std::printf(
      "| %d | %s, %s | %s | %d | %.1f | %.1f | %.0f | %.0f | %.1f | %.1f %% | %.1f %% | "
      "%.0f | %s |\n",
      n_rows, std::string(type_name(up.type)).c_str(), std::string(type_name(down.type)).c_str(),
      kernel.name, cut.height, us_sort, us_cut, us_up, us_down, us_sum, share(2, us_up),
      share(1, us_down), n_rows * 1e6 / us / kLayers,
      want.empty() ? "" : compared(want, out).c_str());
  std::fflush(stdout);
  return out;
}

// By all of them: the bits must be the same.
void bench_kernels(Timer& time, double peak, Type gate_up, Type down_type, int n_rows,
                   const std::vector<Kernel>& kernels) {
  const Layer layer = make_layer(gate_up, down_type, n_rows);
  std::vector<float> want;
  for (const Kernel& kernel : kernels) {
    std::vector<float> got = bench_layer(time, peak, layer, kernel, want);
    if (want.empty()) want = std::move(got);
  }
}

void run_all() {
  Timer time;
  const int n_sms = launch_on(nullptr).n_sms;
  constexpr int kTimes = 20000;
  int* const sink = device<int>(1);
  const double us = time([&] { int8_products_kernel<<<2 * n_sms, 256>>>(kTimes, sink); });
  const double peak = 2.0 * 8 * kTimes * 16 * 8 * 32 * 8 * 2 * n_sms / us / 1e6;
  std::printf("int8 products: %.0f TOPS.\n\n", peak);
  std::printf(
      "| rows | gate and up, down | kernel | tile | sort us | tiles us | gate_up us | down us | "
      "sum "
      "us | gate_up of int8 | down of int8 | 48 layers, tokens/s | against the first |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  // Tiles: pairs of stripes and groups of eight rows a warp, warps down and across, chunks in
  // shared memory, pairs of blocks in straight-line code.
  const std::vector<Kernel> both{old_kernel(), block_kernel()};
  std::vector<Kernel> all = both;
  all.push_back(block_variant<BlockTile<2, 8, 4, 2, 2, 1>>("block, 128 rows, one an SM"));
  all.push_back(block_variant<BlockTile<2, 4, 4, 2, 2, 1, 2>>("block, 4 x 2 warps, two an SM"));
  for (const int n_rows : {2048, 512, 128, 4096}) {
    bench_kernels(time, peak, Type::q4_k, Type::q4_k, n_rows, all);
    bench_kernels(time, peak, Type::q4_k, Type::q6_k, n_rows, all);
  }
  for (const int n_rows : {32, 64, 256, 1024}) {
    bench_kernels(time, peak, Type::q4_k, Type::q6_k, n_rows, both);
  }
  bench_kernels(time, peak, Type::q5_k, Type::q5_k, 2048, both);
  bench_kernels(time, peak, Type::q8_0, Type::q8_0, 2048, both);
}

}  // namespace
}  // namespace sluice::backend::cuda

int main() {
  return sluice::bench::bench_main([] {
    sluice::backend::cuda::run_all();
    return 0;
  });
}
