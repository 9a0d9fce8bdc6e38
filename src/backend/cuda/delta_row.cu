// The gated delta rule of a step of a single row, a head on four SMs (delta_row_body.h).
//
// Layout   as in delta_net.h.
// Mapping  as delta_part.cu, for one row and so without loops: a cluster of four blocks is a value
//          head. Three warps make q, k and the block's part of v, one the gates; all take four
//          columns of S. The first block finishes the row; nobody else waits for it.
// Limits   those of delta_net(); one row and n_taps <= 4; clusters.
// Cost     64 registers and 2 KB, so that it begins beside two blocks of project_row, whatever
//          types of weights these have. See docs/decisions/0024.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/delta_row.h"

#include "backend/cuda/cluster.cuh"
#include "backend/cuda/delta_row_body.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

__global__ void __launch_bounds__(kDeltaPartWarps* kWarp, 4)
    delta_row_kernel(const __grid_constant__ DeltaNetStep p) {
#if __CUDA_ARCH__ >= 900
  __shared__ DeltaRowShared shared;
  __shared__ uint64_t arrived;
  const int part = static_cast<int>(blockIdx.x) % kDeltaParts;
  const int head = static_cast<int>(blockIdx.x) / kDeltaParts, warp = warp_index();
  let_next_kernel_begin();
  const DeltaStepRow row(p);
  const DeltaHead own(p, head, row.sequence, {0, 1}, row.from, row.to);
  if (!row.exists) {
    wait_for_previous_kernel();
    if (part == 0 && warp == 0) write_delta_row(p, 0, head, {float4{0, 0, 0, 0}});
    return;
  }
  DeltaPartColumns columns;
  columns.load(p, own.column_before(p, 0), part * kDeltaPartColumns + warp * kDeltaPartOfWarp);
  const SentNumbers sent(shared.o, arrived);
  if (part == 0 && threadIdx.x == 0) sent.open(p.head_dim * static_cast<int>(sizeof(float)));
  arrive_in_cluster();
  const DeltaUpdate update(p, row.sequence, row.position);
  const auto await_others = [] {
    await_cluster();
    wait_for_previous_kernel();
  };

  PerLane<float4> norm{}, gate{};
  const bool finishes = part == 0 && warp == kFinishWarp;
  if (warp < kGateWarp) {
    const DeltaRowMaker maker(p, own, warp, part);
    await_others();
    maker.make(p, shared);
  } else if (warp == kGateWarp) {
    const DeltaRowGates gates(p, head);
    await_others();
    gates.make(shared.row);
  } else {
    if (finishes) norm = delta_norm_weights(p);
    await_others();
    if (finishes) gate = delta_out_gate(p, 0, head);
  }
  __syncthreads();
  step_columns(p, shared, columns, own, head, update,
               [&](int column, const float4& o) { sent.send(0, column, o); });
  columns.store(p, own.column_after(p, 0));
  if (warp > kFinishWarp) {
    DeltaRowMaker::leave(p, own, head, warp - kFinishWarp - 1, part, update, shared);
  }
  if (finishes) {
    sent.await();
    PerLane<float4> v = sent_row(p, shared.o);
    finish_delta_row(p, 0, head, norm, gate, v);
  }
#endif
}

}  // namespace

bool can_row_delta(const DeltaNetStep& p, const Launch& how) {
  return how.clusters && p.n_rows == 1 && p.n_taps <= kDeltaMostTaps;
}

void row_delta_net(const DeltaNetStep& p, const Launch& how) {
  CHECK(p.head_dim <= kDeltaDims && p.n_rows == 1 && p.n_taps <= kDeltaMostTaps);
  const dim3 grid(static_cast<unsigned>(kDeltaParts * p.n_value_heads));
  launch(delta_row_kernel, grid, kDeltaPartWarps * kWarp, 0, how, p, kDeltaParts);
}

}  // namespace sluice::backend::cuda
