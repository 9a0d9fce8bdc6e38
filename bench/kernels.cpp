// How fast one core reads weights through each kernel, next to how fast it can read at all; and how
// many multiply-adds it does when 32 inputs share the weights.
//
//   cmake --preset release -DSLUICE_BENCH=ON && cmake --build --preset release --target
//   bench_kernels build/release/bench/bench_kernels [--benchmark_filter=Q4_K]
// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/kernels/kernels.h"
#include "backend/cpu/quantized_rows.h"
#include "base/error.h"
#include "base/random.h"
#include "cli/bench/machine_speed.h"
#include "quant/random_rows.h"

namespace sluice::backend::cpu {
namespace {

constexpr uint64_t kBytes = uint64_t{512} << 20;  // far above any cache
constexpr int64_t kRows = 32;                     // what a thread takes at a time

double read_speed = 0.0;  // bytes/s

std::byte* weight_memory() {
  static std::byte* const memory = [] {
    constexpr size_t kHugePage = size_t{2} << 20;
    void* const fresh = std::aligned_alloc(kHugePage, kBytes);
    madvise(fresh, kBytes, MADV_HUGEPAGE);  // refused is fine: then with small pages
    return static_cast<std::byte*>(fresh);
  }();
  return memory;
}

struct Inputs {
  Inputs(int64_t n_rows, int64_t n_cols) {
    const RowBatch batch{0, n_rows};
    std::vector<float> x(static_cast<size_t>(n_cols));
    quantized.reserve(batch.end(), n_cols);
    for (int64_t r = 0; r < n_rows; ++r) {
      for (size_t i = 0; i < x.size(); ++i) {
        x[i] = random_signed(random_bits(static_cast<uint64_t>(r), i));
      }
      quantized.set(batch, r, 0, n_cols, x.data());
    }
    for (int64_t g = 0; g < batch.n_groups(); ++g) groups.push_back(quantized.group(batch, g));
  }
  QuantizedRows quantized;
  std::vector<QuantizedInputs> groups;
};

// Fills memory with rows of the type, the same few thousand over and over; returns their number.
int64_t fill_weights(quant::Type type, int64_t n_cols, quant::Layout layout) {
  const uint64_t row_bytes = quant::row_bytes(type, n_cols);
  const int64_t n_rows = static_cast<int64_t>(kBytes / row_bytes) / kRows * kRows;
  const int64_t n_own = std::min<int64_t>(n_rows, 4096);
  std::byte* const memory = weight_memory();
  quant::random_row_blocks(type, 1, 0, n_own * n_cols / quant::type_info(type).block_elems, 0.05f,
                           memory);
  if (layout == quant::Layout::stripes) {
    const std::vector<std::byte> rows(memory, memory + static_cast<uint64_t>(n_own) * row_bytes);
    for (uint64_t at = 0; at < rows.size(); at += quant::kStripeRows * row_bytes) {
      quant::weave_rows(type, n_cols, rows.data() + at, memory + at);
    }
  }
  for (int64_t r = n_own; r < n_rows; r += n_own) {
    std::memcpy(memory + static_cast<uint64_t>(r) * row_bytes, memory,
                static_cast<uint64_t>(std::min(n_own, n_rows - r)) * row_bytes);
  }
  return n_rows;
}

// Weights stream from memory; `inputs` rows share them, as those of several texts do.
template <int64_t inputs>
void decode(benchmark::State& state, const Kernels& kernels, quant::Type type, int64_t n_cols,
            quant::Layout layout) {
  const int64_t n_rows = fill_weights(type, n_cols, layout);
  const uint64_t row_bytes = quant::row_bytes(type, n_cols);
  const Inputs in(inputs, n_cols);
  std::vector<float> out(kRows * inputs);
  const MultiplyRows multiply = kernels.multiply_rows(type);
  for (auto _ : state) {
    for (int64_t r = 0; r < n_rows; r += kRows) {
      multiply({weight_memory() + static_cast<uint64_t>(r) * row_bytes, kRows, n_cols, layout},
               in.groups, out.data(), kRows);
    }
    benchmark::DoNotOptimize(out.data());
  }
  const double bytes =
      static_cast<double>(state.iterations()) * static_cast<double>(n_rows) * double(row_bytes);
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
  state.counters["of_reads_%"] =
      benchmark::Counter(bytes / read_speed * 100.0, benchmark::Counter::kIsRate);
}

void prefill(benchmark::State& state, const Kernels& kernels, quant::Type type, int64_t n_cols,
             quant::Layout layout) {
  constexpr int64_t kInputs = 32;
  const uint64_t row_bytes = quant::row_bytes(type, n_cols);
  const int64_t n_rows = fill_weights(type, n_cols, layout) / 64;
  const Inputs in(kInputs, n_cols);
  std::vector<float> out(kRows * kInputs);
  const MultiplyRows multiply = kernels.multiply_rows(type);
  for (auto _ : state) {
    for (int64_t r = 0; r < n_rows; r += kRows) {
      multiply({weight_memory() + static_cast<uint64_t>(r) * row_bytes, kRows, n_cols, layout},
               in.groups, out.data(), kRows);
    }
    benchmark::DoNotOptimize(out.data());
  }
  state.counters["multiply_adds"] = benchmark::Counter(
      static_cast<double>(state.iterations()) * static_cast<double>(n_rows * n_cols * kInputs),
      benchmark::Counter::kIsRate);
}

void register_all() {
  const std::pair<const char*, quant::Layout> layouts[] = {{"stripes", quant::Layout::stripes},
                                                           {"rows", quant::Layout::rows}};
  for (const Kernels& kernels : usable_kernels()) {
    for (const auto& [layout_name, layout] : layouts) {
      for (const quant::Type type : quant::supported_types()) {
        if (quant::is_float(type)) continue;
        const auto add = [&, layout = layout](const char* test, auto* run, int64_t n_cols) {
          const std::string name = cat(kernels.name, "/", layout_name, "/", test, "/",
                                       quant::type_name(type), "/", n_cols);
          benchmark::RegisterBenchmark(name.c_str(), [=, &kernels](auto& state) {
            run(state, kernels, type, n_cols, layout);
          })->Unit(benchmark::kMillisecond);
        };
        add("decode", decode<1>, 768);
        add("decode", decode<1>, 2048);
        add("decode_2", decode<2>, 2048);
        add("decode_3", decode<3>, 2048);
        add("decode_8", decode<8>, 2048);
        add("prefill_32", prefill, 2048);
      }
    }
  }
}

}  // namespace
}  // namespace sluice::backend::cpu

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  sluice::ThreadPool one(1);
  sluice::backend::cpu::read_speed = sluice::cli::read_bytes_per_second(one);
  std::printf("one core reads %.1f GB/s\n", sluice::backend::cpu::read_speed / 1e9);
  sluice::backend::cpu::register_all();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
