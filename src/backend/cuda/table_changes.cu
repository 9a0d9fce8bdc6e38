// See table_changes.h.
//
// Mapping  every block copies its part of each expert that stands elsewhere; the first writes the
//          table.
// Cost     docs/decisions/0023.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/table_changes.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 128;

__global__ void __launch_bounds__(kThreads)
    change_table_kernel(const __grid_constant__ TableChangesView p) {
  wait_for_previous_kernel();
  const int n = *p.n;
  if (blockIdx.x == 0) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      p.table[p.changes[i].entry] = p.changes[i].slot;
    }
  }
#pragma unroll 1
  for (int i = 0; i < n; ++i) {
    const TableChange change = p.changes[i];
    if (change.from == nullptr) continue;
    const auto* const from = reinterpret_cast<const uint4*>(change.from);
    auto* const to = reinterpret_cast<uint4*>(change.slot);
    const auto n_pieces = static_cast<int64_t>(change.n_bytes / 16);
#pragma unroll 4
    for (int64_t k = blockIdx.x * kThreads + threadIdx.x; k < n_pieces; k += kBlocks * kThreads) {
      to[k] = __ldcg(from + k);
    }
  }
}

}  // namespace

void change_table(const TableChangesView& p, const Launch& how) {
  launch(change_table_kernel, dim3(kBlocks), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
