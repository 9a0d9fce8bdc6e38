// What the two files of a GPU's operations share: checks of what they are asked for, and what
// stands in their memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "backend/cuda/cuda_ops.h"
#include "backend/gpu_limits.h"

namespace sluice::backend::cuda {

constexpr int kMostHeads = kGpuMostHeads;
constexpr int kMostExperts = kGpuMostExperts;
static_assert(kMaxRows == kGpuMostRows && kMaxUsed == kGpuMostUsed);

// What stands in zeros: counters of attend and route, and a table without addresses.
struct Zeros {
  unsigned long long n_attended[kMaxRows * kMostHeads];
  unsigned n_routed;
  unsigned n_picked[kMaxRows];
  const uint8_t* table[kMostExperts];
  uint64_t score_sums[kMostRanked + 1];  // of project_add, until down
  AnswerRelay relay;                     // not left at zero
};

inline void require(bool holds, const auto&... what) {
  if (!holds) throw Error(Errc::device, cat("CUDA: ", what...));
}

inline int rows_of(int64_t n_rows) {
  require(n_rows >= 1 && n_rows <= kMaxRows, "a step of ", n_rows,
          " rows; steps of more than 16 rows do not run on GPUs yet");
  return static_cast<int>(n_rows);
}

// Rows that a kernel normalises first.
template <typename Params>
void set_normed_rows(Params& p, ConstRowsView x, const NormView& norm) {
  p.x = x.data;
  p.norm = norm.weight;
  p.eps = norm.eps;
  p.n_rows = rows_of(x.n_rows);
}

inline const uint8_t* bytes(const std::byte* data) {
  return reinterpret_cast<const uint8_t*>(data);
}

// Every operation but project_add forgets what attend left behind, and every one but find_experts
// comes behind what was held back.
template <typename Work>
void CudaOps::enqueue(const Work& work) {
  const Attended attended = std::exchange(attended_, {});
  const auto add = std::exchange(held_add_, {});
  stream_.enqueue([&](cudaStream_t) {
    if (add) cuda::project_add(*add, how_);
    launch_held();
    work(attended);
  });
}

}  // namespace sluice::backend::cuda
