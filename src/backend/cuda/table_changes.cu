// See table_changes.h.
//
// Mapping  the first block writes the table. All take parts of the experts that stand elsewhere, a
//          block every gridDim-th part, so that many copies are under way at once.
// Cost     docs/decisions/0023.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/table_changes.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 528;  // four for each SM of a large card
constexpr int kParts = 64;    // of an expert

__global__ void __launch_bounds__(kThreads)
    change_table_kernel(const __grid_constant__ TableChangesView p) {
  wait_for_previous_kernel();
  const int n = *p.n;
  if (blockIdx.x == 0) {
    for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
      p.table[p.changes[i].entry] = p.changes[i].slot;
    }
    __threadfence();  // kernels that begin early read it before they wait
  }
#pragma unroll 1
  for (int item = static_cast<int>(blockIdx.x); item < n * kParts; item += kBlocks) {
    const TableChange change = p.changes[item / kParts];
    if (change.from == nullptr) continue;
    const auto* const from = reinterpret_cast<const uint4*>(change.from);
    auto* const to = reinterpret_cast<uint4*>(change.slot);
    const auto n_pieces = static_cast<int64_t>(change.n_bytes / 16);
    const int64_t end = n_pieces * (item % kParts + 1) / kParts;
#pragma unroll 8
    for (int64_t k = n_pieces * (item % kParts) / kParts + threadIdx.x; k < end; k += kThreads) {
      to[k] = __ldcg(from + k);
    }
  }
}

}  // namespace

void change_table(const TableChangesView& p, const Launch& how) {
  launch(change_table_kernel, dim3(kBlocks), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
