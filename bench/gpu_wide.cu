// What the experts of a prompt cost on a GPU: one layer of the Qwen3-30B-A3B shape (128 experts, 8
// of a row), all resident, for 32 to 4,096 rows with uneven routing; each kernel alone, tokens/s of
// 48 such layers, and the share of int8 products by tensor cores measured in the same run. Prints
// markdown.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "backend/cuda/cuda_error.h"
#include "backend/cuda/wide_experts.h"
#include "base/random.h"
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

// pairs: as WideGemm's. Returns what the layer adds to its rows.
std::vector<float> bench_layer(Timer& time, double peak, Type gate_up, Type down_type, int n_rows,
                               int pairs) {
  const Launch how = launch_on(nullptr);
  const size_t up_at = size_t{kFf} * quant::row_bytes(gate_up, kModel), down_at = 2 * up_at;
  const size_t stride =
      (down_at + size_t{kModel} * quant::row_bytes(down_type, kFf) + 255) / 256 * 256;
  uint8_t* const slots = device<uint8_t>(kExperts * stride);
  fill_matrices(gate_up, kModel, kFf, kExperts, slots, stride);
  fill_matrices(gate_up, kModel, kFf, kExperts, slots + up_at, stride);
  fill_matrices(down_type, kFf, kModel, kExperts, slots + down_at, stride);
  std::vector<const uint8_t*> table;
  for (size_t e = 0; e < kExperts; ++e) table.push_back(slots + e * stride);

  const int n_slots = n_rows * kUsed;
  const auto n = static_cast<size_t>(n_slots);
  SortPairs sort;
  sort.experts = device(choices(n_rows));
  sort.weights = device(std::vector<float>(n, 0.1f));
  sort.n_slots = n_slots;
  sort.n_experts = kExperts;
  sort.first = device<int32_t>(kExperts + 1);
  sort.slots = device<int32_t>(n);
  const int height =
      std::min(wide_tile_height(gate_up, how, pairs), wide_tile_height(down_type, how, pairs));
  const int most = most_tiles(n_slots, kExperts, height);
  const CutTiles cut{sort.first,
                     device(table),
                     kExperts,
                     height,
                     device<WideTile>(static_cast<size_t>(most)),
                     device<int32_t>(1)};
  WideGemm up;
  up.type = gate_up;
  up.n_cols = kModel;
  up.n_out = kFf;
  up.weights_at[1] = static_cast<int64_t>(up_at);
  up.in = int8_rows(static_cast<size_t>(n_rows), kModel);
  up.rows = {cut.tiles, cut.n_tiles, most, sort.slots, kUsed};
  up.height = height;
  up.pairs = pairs;
  up.h = int8_rows(n, kFf);
  WideGemm down;
  down.type = down_type;
  down.n_cols = kFf;
  down.n_out = kModel;
  down.weights_at[0] = static_cast<int64_t>(down_at);
  down.in = up.h;
  down.rows = up.rows;
  down.rows.slots_per_row = 1;
  down.height = height;
  down.pairs = pairs;
  down.out = device<float>(n * kModel);
  down.out_stride = kModel;
  SumPairs sum{down.out,
               sort.weights,
               nullptr,
               n_rows,
               kUsed,
               kModel,
               device<float>(static_cast<size_t>(n_rows) * kModel)};

  const double us_sort = time([&] { sort_pairs(sort, how); });
  const double us_cut = time([&] { cut_tiles(cut, how); });
  const double us_up = time([&] { wide_gemm(up, how); });
  const double us_down = time([&] { wide_gemm(down, how); });
  const double us_sum = time([&] { sum_pairs(sum, how); });
  const double us = time([&] {
    sort_pairs(sort, how);
    cut_tiles(cut, how);
    wide_gemm(up, how);
    wide_gemm(down, how);
    sum_pairs(sum, how);
  });
  const auto tops = [&](double n_matrices, double us_of) {
    return 2.0 * n_slots * kModel * kFf * n_matrices / us_of / 1e6;
  };
  std::printf(
      "| %d | %s, %s | %d | %d | %.1f | %.1f | %.0f | %.0f | %.1f | %.1f %% | %.1f %% | %.0f |\n",
      n_rows, std::string(type_name(gate_up)).c_str(), std::string(type_name(down_type)).c_str(),
      pairs, height, us_sort, us_cut, us_up, us_down, us_sum, 100 * tops(2, us_up) / peak,
      100 * tops(1, us_down) / peak, n_rows * 1e6 / us / kLayers);
  std::fflush(stdout);
  std::vector<float> out(static_cast<size_t>(n_rows) * kModel);
  CHECK_CUDA(cudaMemset(sum.x, 0, out.size() * sizeof(float)));
  wide_gemm(up, how);
  wide_gemm(down, how);
  sum_pairs(sum, how);
  CHECK_CUDA(cudaMemcpy(out.data(), sum.x, out.size() * sizeof(float), cudaMemcpyDeviceToHost));
  return out;
}

// With one pair of stripes a warp, and with two: the bits must be the same.
void bench_pairs(Timer& time, double peak, Type gate_up, Type down_type, int n_rows) {
  const std::vector<float> one = bench_layer(time, peak, gate_up, down_type, n_rows, 1);
  const std::vector<float> two = bench_layer(time, peak, gate_up, down_type, n_rows, 2);
  if (std::memcmp(one.data(), two.data(), one.size() * sizeof(float)) != 0) {
    throw std::runtime_error("two pairs of stripes a warp give other bits than one");
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
      "| rows | gate and up, down | pairs | tile | sort us | tiles us | gate_up us | down us | sum "
      "us | "
      "gate_up of int8 | down of int8 | 48 layers, tokens/s |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|---|\n");
  for (const int n_rows : {32, 128, 512, 2048, 4096}) {
    bench_pairs(time, peak, Type::q4_k, Type::q4_k, n_rows);
    bench_pairs(time, peak, Type::q4_k, Type::q6_k, n_rows);
  }
  bench_layer(time, peak, Type::q8_0, Type::q8_0, 2048, 1);
}

}  // namespace
}  // namespace sluice::backend::cuda

int main() {
  try {
    sluice::backend::cuda::run_all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_gpu_wide: %s\n", e.what());
    return 1;
  }
  return 0;
}
