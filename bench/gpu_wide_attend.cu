// Attention of prompts on sm_90: group_attend.cuh with tiles and groups of several sizes against
// wide_attend.cu, for rows of the Qwen3-30B-A3B shape at several depths: microseconds, errors
// against float64, and whether a row's bits depend on where it stands in a step. First the products
// of a group alone, against their definition. Prints markdown.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstdio>

#include "backend/cuda/group_attend.cuh"
#include "backend/cuda/wide_heads.h"
#include "gpu_wide.cuh"
#include "quant/half.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kHeads = 32, kKvHeads = 4, kDim = 128, kPageShift = 6;
constexpr int kQkv = (kHeads + 2 * kKvHeads) * kDim;

std::vector<float> numbers(size_t n, uint64_t seed, float size) {
  std::vector<float> out(n);
  for (size_t i = 0; i < n; ++i) out[i] = size * random_signed(random_bits(seed, i));
  return out;
}
std::vector<uint16_t> halves(size_t n, uint64_t seed, float size) {
  std::vector<uint16_t> out(n);
  for (size_t i = 0; i < n; ++i) {
    out[i] = quant::f32_to_f16(size * random_signed(random_bits(seed, i)));
  }
  return out;
}
double number(uint16_t half) { return static_cast<double>(quant::f16_to_f32(half)); }

// ---- Products alone: 64 rows times n * 8 columns over 32 numbers, the second sixteen added.

template <bool by_line, int n, bool shared_rows>
__global__ void product_kernel(const uint16_t* rows, const uint16_t* columns, float* out) {
  // Columns: by_line a tile of n * 8 lines; else n / 8 tiles of 64 lines.
  __shared__ __align__(1024) uint8_t tile[2][128 * kLineBytes];
  __shared__ __align__(1024) uint8_t row_tile[64 * kLineBytes];
  constexpr int kStride = 64 * kLineBytes;
  const int thread = static_cast<int>(threadIdx.x);
  for (int i = thread; i < n * 8 * 32; i += static_cast<int>(blockDim.x)) {
    const int column = i / 32, k = i % 32;
    const int line = by_line ? column : k, at = by_line ? k : column;
    uint8_t* const to = tile[0] + at / 64 * kStride + byte_of_tile(line, at % 64 / 8 * 16);
    reinterpret_cast<uint16_t*>(to)[at % 8] = columns[i];
  }
  for (int i = thread; i < 64 * 32; i += static_cast<int>(blockDim.x)) {
    uint8_t* const to = row_tile + byte_of_tile(i / 32, i % 32 / 8 * 16);
    reinterpret_cast<uint16_t*>(to)[i % 8] = rows[i];
  }
  PerLane<FloatSums<n>> sums{};
  PerLane<RowHalves> a[2];
  const int lane = lane_index();
  for (int s = 0; s < 2; ++s) {
    for (int i = 0; i < 4; ++i) {
      const int row = 16 * warp_index() + lane / 4 + i % 2 * 8, k = lane % 4 * 2 + i / 2 * 8;
      a[s].value.a[i] = *reinterpret_cast<const uint32_t*>(rows + row * 32 + 16 * s + k);
    }
  }
  show_copies();
  __syncthreads();
  const GroupColumns own(tile[0], kStride), own_rows(row_tile, kStride);
  begin_products();
#pragma unroll
  for (int s = 0; s < 2; ++s) {
    const GroupColumns at = own.behind(by_line ? 32 * s : 16 * s * kLineBytes);
    if constexpr (shared_rows) {
      multiply_shared<false>(sums, own_rows.behind(32 * s), at, s > 0);
    } else {
      multiply_group<false, by_line>(sums, a[s], at, s > 0);
    }
  }
  end_batch();
  await_batches<0>();
  hold(sums);
#pragma unroll
  for (int i = 0; i < 4 * n; ++i) {
    const int row = 16 * warp_index() + lane / 4 + i % 4 / 2 * 8;
    out[row * n * 8 + i / 4 * 8 + lane % 4 * 2 + i % 2] = sums.value.c[i / 4][i % 4];
  }
}

template <bool by_line, int n, bool shared_rows>
void check_product(const char* name) {
  const auto rows = halves(64 * 32, 11, 1.0f), columns = halves(n * 8 * 32, 12, 1.0f);
  float* const out = device<float>(64 * n * 8);
  product_kernel<by_line, n, shared_rows><<<1, 128>>>(device(rows), device(columns), out);
  CHECK_CUDA(cudaDeviceSynchronize());
  const auto got = copied(out, 64 * n * 8);
  int n_wrong = 0;
  for (size_t row = 0; row < 64; ++row) {
    for (size_t column = 0; column < n * 8; ++column) {
      double want = 0;
      for (size_t k = 0; k < 32; ++k) {
        want += number(rows[row * 32 + k]) * number(columns[column * 32 + k]);
      }
      n_wrong += std::abs(want - static_cast<double>(got[row * n * 8 + column])) > 1e-4;
    }
  }
  std::printf("- %s: %d of %d wrong\n", name, n_wrong, 64 * n * 8);
}

// ---- Attention.

struct Prompt {
  WideAttend p;
  std::vector<uint16_t> k, v;  // pages
  int first = 0;
};

// Keys and values of all positions before `first` are random; sharpness: of scores.
Prompt prompt_of(int n_rows, int first, float sharpness) {
  const auto n = static_cast<size_t>(n_rows);
  const int n_pages = (first + n_rows + 63) >> kPageShift;
  std::vector<int32_t> positions, table;
  for (int r = 0; r < n_rows; ++r) positions.push_back(first + r);
  for (int i = 0; i < n_pages; ++i) table.push_back(n_pages - 1 - i);
  Prompt out;
  WideAttend& p = out.p;
  p.of.qkv = device(numbers(n * kQkv, 1, 1.0f));
  p.of.n_rows = n_rows;
  p.of.n_heads = kHeads;
  p.of.n_kv_heads = kKvHeads;
  p.of.head_dim = kDim;
  p.of.head_norm = NormOfHeads::per_head;
  p.of.q_norm = device(std::vector<float>(kDim, sharpness));
  p.of.k_norm = device(std::vector<float>(kDim, 1.0f));
  p.of.angles = device(std::vector<float>(n * kDim, 0.7f));
  p.of.n_pairs = kDim / 2;
  p.of.positions = device(positions);
  p.of.sequences = device(std::vector<int32_t>(n, 0));
  p.of.page_table = device(table);
  p.of.table_stride = n_pages;
  p.of.page_shift = kPageShift;
  p.page = kv_page(Type::f16, kKvHeads, kDim, 1 << kPageShift);
  const auto n_numbers = static_cast<size_t>(p.page.page_bytes() * n_pages / 2);
  p.of.k = reinterpret_cast<uint8_t*>(device(halves(n_numbers, 21, 1.7f)));
  p.of.v = reinterpret_cast<uint8_t*>(device(halves(n_numbers, 22, 1.0f)));
  p.of.out = device<float>(n * kHeads * kDim);
  p.of.out_int8 = int8_rows(n, kHeads * kDim);
  p.q_eps = p.k_eps = 1e-6f;
  p.queries = device<uint16_t>(static_cast<size_t>(wide_query_halves(n_rows, kHeads, kDim)));
  p.scales = device<float>(n * kHeads);
  out.first = first;
  wide_heads(p, launch_on(nullptr));
  CHECK_CUDA(cudaDeviceSynchronize());
  out.k = copied(reinterpret_cast<const uint16_t*>(p.of.k), n_numbers);
  out.v = copied(reinterpret_cast<const uint16_t*>(p.of.v), n_numbers);
  return out;
}

// What some rows and heads must give.
class Reference {
 public:
  explicit Reference(const Prompt& prompt) : n_rows_(prompt.p.of.n_rows) {
    const auto n_pairs = static_cast<size_t>(n_rows_) * kHeads;
    const auto queries = copied(prompt.p.queries, n_pairs * 2 * kDim);
    const auto scales = copied(prompt.p.scales, n_pairs);
    for (int i = 0; i < 40; ++i) {
      const int row = i < 8 ? i * 9 % n_rows_ : static_cast<int>(random_bits(31, i) % n_rows_);
      pairs_.push_back(static_cast<size_t>(row * kHeads + i * 7 % kHeads));
      add(prompt, queries, scales, pairs_.back());
    }
  }

  // Mean and worst over rows of the error's norm by the result's, in 1e-7.
  std::string errors(const std::vector<float>& out) const {
    double mean = 0, worst = 0;
    for (size_t i = 0; i < pairs_.size(); ++i) {
      double error = 0, size = 0;
      for (size_t c = 0; c < kDim; ++c) {
        const double want = want_[i * kDim + c];
        const double off = static_cast<double>(out[pairs_[i] * kDim + c]) - want;
        error += off * off, size += want * want;
      }
      const double relative = 1e7 * std::sqrt(error / size);
      mean += relative / static_cast<double>(pairs_.size());
      worst = std::isnan(relative) ? relative : std::max(worst, relative);
    }
    char text[64];
    std::snprintf(text, sizeof(text), "%.2f / %.2f", mean, worst);
    return text;
  }

 private:
  static size_t at(const Prompt& prompt, int position, int kv_head) {
    const int n_pages = prompt.p.of.table_stride, page = n_pages - 1 - (position >> kPageShift);
    return static_cast<size_t>(prompt.p.page.row_at(page, kv_head, position & 63) / 2);
  }
  void add(const Prompt& prompt, const std::vector<uint16_t>& queries,
           const std::vector<float>& scales, size_t pair) {
    const int row = static_cast<int>(pair) / kHeads, head = static_cast<int>(pair) % kHeads;
    const int n = prompt.first + row + 1, kv_head = head / (kHeads / kKvHeads);
    std::vector<double> scores;
    double peak = -1e300, sum = 0;
    for (int i = 0; i < n; ++i) {
      double dot = 0;
      const size_t key = at(prompt, i, kv_head);
      for (size_t c = 0; c < kDim; ++c) {
        const uint16_t* const q = &queries[pair * 2 * kDim + c];
        dot += (number(q[0]) + number(q[kDim])) * number(prompt.k[key + c]);
      }
      scores.push_back(dot * static_cast<double>(scales[pair]));
      peak = std::max(peak, scores.back());
    }
    std::vector<double> result(kDim);
    for (int i = 0; i < n; ++i) {
      const double weight = std::exp2(scores[static_cast<size_t>(i)] - peak);
      const size_t value = at(prompt, i, kv_head);
      sum += weight;
      for (size_t c = 0; c < kDim; ++c) result[c] += weight * number(prompt.v[value + c]);
    }
    for (const double v : result) want_.push_back(v / sum);
  }

  int n_rows_;
  std::vector<size_t> pairs_;
  std::vector<double> want_;
};

using Attention = std::function<void(const WideAttend&, const Launch&)>;

// Whether rows from the 37th on have the same bits alone.
std::string placed(const WideAttend& p, const Attention& attend, const Launch& how) {
  constexpr int kSkipped = 37;
  const size_t n = static_cast<size_t>(p.of.n_rows) * kHeads * kDim;
  const auto whole = copied(p.of.out, n);
  WideAttend part = p;
  part.of.n_rows -= kSkipped;
  part.of.positions += kSkipped, part.of.sequences += kSkipped;
  part.queries += kSkipped * kHeads * 2 * kDim, part.scales += kSkipped * kHeads;
  attend(part, how);
  CHECK_CUDA(cudaDeviceSynchronize());
  const size_t skipped = size_t{kSkipped} * kHeads * kDim;
  return compared({whole.begin() + static_cast<int64_t>(skipped), whole.end()},
                  copied(p.of.out, n - skipped));
}

void bench(Timer& time, const char* name, const Prompt& prompt, const Reference& reference,
           const Attention& attend, double us_before) {
  const Launch how = launch_on(nullptr);
  const WideAttend& p = prompt.p;
  const size_t n = static_cast<size_t>(p.of.n_rows) * kHeads * kDim;
  CHECK_CUDA(cudaMemset(p.of.out, 0xff, n * sizeof(float)));
  const double us = time([&] { attend(p, how); }) - us_before;
  const std::string errors = reference.errors(copied(p.of.out, n));
  const double flop = 4.0 * kHeads * kDim * p.of.n_rows * (prompt.first + 0.5 * p.of.n_rows);
  std::printf("| %d | %d | %s | %.0f | %.0f | %s | %s |\n", p.of.n_rows, prompt.first, name, us,
              flop / us / 1e6, errors.c_str(), us_before > 0 ? "" : placed(p, attend, how).c_str());
  std::fflush(stdout);
}

template <GroupOptions o>
void attend_by(const WideAttend& p, const Launch& how) {
  run_group_attend<GroupShape<kDim, false, o>>(p, how);
}

void run_all() {
  std::printf("Products against their definition:\n\n");
  check_product<true, 8, false>("64 columns by line");
  check_product<true, 16, false>("128 columns by line");
  check_product<false, 8, false>("64 columns by number");
  check_product<false, 16, false>("128 columns by number");
  check_product<true, 8, true>("64 columns by line, rows in shared memory");
  check_product<true, 16, true>("128 columns by line, rows in shared memory");
  Timer time;
  const Launch how = launch_on(nullptr);
  std::printf(
      "\n| rows | from | kernel | us | TFLOP/s | error 1e-7, mean / worst row | rows from the 37th "
      "on alone |\n|---|---|---|---|---|---|---|\n");
  struct Size {
    int n_rows, first;
    float sharpness;
  };
  for (const Size s : {Size{2048, 0, 1.0f}, Size{2048, 2048, 1.0f}, Size{2048, 6144, 1.0f},
                       Size{128, 8192, 1.0f}, Size{2048, 6144, 4.0f}}) {
    const Prompt prompt = prompt_of(s.n_rows, s.first, s.sharpness);
    const Reference reference(prompt);
    const double us_heads = time([&] { wide_heads(prompt.p, how); });
    const auto run = [&](const char* name, const Attention& attend, double us_before = 0) {
      bench(time, name, prompt, reference, attend, us_before);
    };
    if (s.sharpness > 1) std::printf("| | | scores four times as large | | | | |\n");
    run("wide_attend", wide_attend, us_heads);
    run("2 groups, 64 keys", attend_by<GroupOptions{2, 64, 2, false, false, 1}>);
    run("2 groups, 64 keys, split early", attend_by<GroupOptions{2, 64, 2, false, true, 1}>);
    run("1 group, 64 keys, two blocks", attend_by<GroupOptions{1, 64, 2, false, false, 2}>);
    run("2 groups, 64 keys, queries in shared memory",
        attend_by<GroupOptions{2, 64, 2, true, false, 1}>);
    run("2 groups, 128 keys, queries in shared memory",
        attend_by<GroupOptions{2, 128, 2, true, false, 1}>);
    run("3 groups, 64 keys, queries in shared memory",
        attend_by<GroupOptions{3, 64, 2, true, false, 1}>);
    run("2 groups, 64 keys, weights of one part",
        attend_by<GroupOptions{2, 64, 1, false, false, 1}>);
  }
}

}  // namespace
}  // namespace sluice::backend::cuda

int main() {
  try {
    sluice::backend::cuda::run_all();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_gpu_wide_attend: %s\n", e.what());
    return 1;
  }
  return 0;
}
