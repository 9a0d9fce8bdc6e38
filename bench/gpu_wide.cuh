// What the benchmarks of wide steps share: times, weights and int8 rows.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "backend/cuda/int8_rows.h"
#include "base/random.h"
#include "gpu_memory.cuh"
#include "quant/random_rows.h"
#include "quant/stripes.h"

namespace sluice::backend::cuda {

class Timer {
 public:
  Timer() {
    CHECK_CUDA(cudaEventCreate(&begin_));
    CHECK_CUDA(cudaEventCreate(&end_));
  }
  // Microseconds: the median of 9 runs.
  double operator()(const std::function<void()>& work) {
    std::vector<float> times;
    work();
    for (int run = 0; run < 9; ++run) {
      CHECK_CUDA(cudaEventRecord(begin_));
      work();
      CHECK_CUDA(cudaEventRecord(end_));
      CHECK_CUDA(cudaEventSynchronize(end_));
      float ms = 0;
      CHECK_CUDA(cudaEventElapsedTime(&ms, begin_, end_));
      times.push_back(1e3f * ms);
    }
    std::ranges::sort(times);
    return times[4];
  }

 private:
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

// n matrices of stripes, `stride` apart, with the same content: only their places matter here.
inline void fill_matrices(quant::Type type, int n_cols, int n_rows, int n, uint8_t* out,
                          size_t stride) {
  const size_t row = quant::row_bytes(type, n_cols);
  std::vector<std::byte> rows(8 * row), stripe(8 * row), all;
  for (int at = 0; at < n_rows; at += 8) {
    if (at < 64) {
      quant::random_row_blocks(type, static_cast<uint64_t>(at), 0,
                               static_cast<int64_t>(8 * row / quant::type_info(type).block_bytes),
                               0.02f, rows.data());
      quant::weave_rows(type, n_cols, rows.data(), stripe.data());
    }
    all.insert(all.end(), stripe.begin(), stripe.end());
  }
  for (int i = 0; i < n; ++i) {
    CHECK_CUDA(cudaMemcpy(out + static_cast<size_t>(i) * stride,
                          i ? out : static_cast<void*>(all.data()), all.size(),
                          i ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice));
  }
}

inline Int8Rows int8_rows(size_t n_rows, int n_cols) {
  const auto n = n_rows * static_cast<size_t>((n_cols + 255) / 256);
  std::vector<int8_t> q(256 * n);
  for (size_t i = 0; i < q.size(); ++i) q[i] = static_cast<int8_t>(random_bits(5, i) & 63);
  std::vector<float> d(8 * n), y(8 * n);
  for (size_t i = 0; i < d.size(); ++i) {
    d[i] = 0.01f * (1.5f + random_signed(random_bits(6, i)));
    y[i] = 0.1f * random_signed(random_bits(7, i));
  }
  return {device(q), device(d), device(y), (n_cols + 255) / 256};
}

// "bits equal", or how many are not.
inline std::string compared(const std::vector<float>& want, const std::vector<float>& got) {
  size_t n = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    n += std::memcmp(want.data() + i, got.data() + i, sizeof(float)) != 0;
  }
  return n == 0 ? "bits equal"
                : std::to_string(n) + " of " + std::to_string(want.size()) + " DIFFER";
}

template <typename T>
std::vector<T> copied(const T* at, size_t n) {
  std::vector<T> out(n);
  CHECK_CUDA(cudaMemcpy(out.data(), at, n * sizeof(T), cudaMemcpyDeviceToHost));
  return out;
}

}  // namespace sluice::backend::cuda
