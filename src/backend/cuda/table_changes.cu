// See table_changes.h.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/launch.cuh"
#include "backend/cuda/table_changes.h"
#include "backend/cuda/warp.cuh"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 64;

__global__ void __launch_bounds__(kThreads)
    change_table_kernel(const __grid_constant__ TableChangesView p) {
  wait_for_previous_kernel();
  const int n = *p.n;
  for (int i = static_cast<int>(threadIdx.x); i < n; i += kThreads) {
    p.table[p.changes[i].entry] = p.changes[i].slot;
  }
}

}  // namespace

void change_table(const TableChangesView& p, const Launch& how) {
  launch(change_table_kernel, dim3(1), kThreads, 0, how, p);
}

}  // namespace sluice::backend::cuda
