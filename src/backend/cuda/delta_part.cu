// The gated delta rule of steps of few rows, a head on four SMs (delta_part_body.h).
//
// Layout   as in delta_net.h.
// Mapping  a cluster of four blocks is a value head of a sequence. Each makes q, k and its gates
//          for itself and takes its 32 columns of S through the rows; o goes to the block that
//          finishes the row, into its shared memory. All that does not come from the kernel before
//          is asked for before the wait: S, the convolution's weights and earlier inputs, norms.
// Limits   those of delta_net(); n_rows <= 16 and n_taps <= 4; clusters. (A single row has a form
//          of its own: delta_row.cu.)
// Cost     see docs/decisions/0024.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/delta_part.h"

#include "backend/cuda/cluster.cuh"
#include "backend/cuda/delta_part_body.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900

__device__ __forceinline__ void write_padding(const DeltaNetStep& p, int head) {
#pragma unroll 1
  for (int row = __ldcg(p.n_live) + warp_index(); row < p.n_rows; row += kDeltaPartWarps) {
    write_delta_row(p, row, head, {float4{0, 0, 0, 0}});
  }
}

#endif

// 80 registers, so that blocks begin beside those of the kernel before.
__global__ void __launch_bounds__(kDeltaPartWarps* kWarp, 3)
    delta_part_kernel(const __grid_constant__ DeltaNetStep p) {
#if __CUDA_ARCH__ >= 900
  __shared__ DeltaPartTile tile;
  __shared__ uint64_t arrived;
  const int part = static_cast<int>(blockIdx.x) % kDeltaParts;
  const int head = static_cast<int>(blockIdx.x) / kDeltaParts;
  const int sequence = static_cast<int>(blockIdx.y), warp = warp_index();
  let_next_kernel_begin();
  const DeltaRows rows = find_part_rows(p, sequence);
  if (rows.n == 0) {
    wait_for_previous_kernel();
    if (sequence == 0 && part == 0) write_padding(p, head);
    return;
  }
  const DeltaHead own(p, head, sequence, rows);
  DeltaPartColumns columns;
  columns.load(p, own.column_before(p, 0), part * kDeltaPartColumns + warp * kDeltaPartOfWarp);
  const SentNumbers sent(&tile.o[0][0], arrived);
  if (threadIdx.x == 0) {
    const int n_finished = (rows.n - part + kDeltaParts - 1) / kDeltaParts;
    sent.open(n_finished * p.head_dim * static_cast<int>(sizeof(float)));
  }
  arrive_in_cluster();
  const auto await_others = [] {
    await_cluster();
    wait_for_previous_kernel();
  };

  PerLane<float4> norm{}, gate{};
  const int finished = kDeltaParts * (warp - kFinishWarp) + part;
  const bool finishes = warp >= kFinishWarp && finished < rows.n;
  if (warp < kGateWarp) {
    DeltaPartMaker maker(p, own, warp, part);
    maker.leave_earlier(tile);
    await_others();
    maker.make(p, rows, tile);
  } else if (warp == kGateWarp) {
    const DeltaGateWeights weights(p, head);
    if (own.logs()) read_part_positions(p, rows, tile);
    await_others();
    make_part_gates(p, weights, head, rows, tile);
  } else {
    norm = delta_norm_weights(p);
    await_others();
    if (finishes) gate = delta_out_gate(p, rows.first + finished, head);
  }
  __syncthreads();
#pragma unroll 1
  for (int t = 0; t < rows.n; ++t) {
    const unsigned block = static_cast<unsigned>(t % kDeltaParts);
    const int at = t / kDeltaParts * kDeltaDims;
    columns.step(p, tile.rows[t], [&](int i, float o) { sent.send(block, at + i, o); });
  }
  columns.store(p, own.column_after(p, 0));
  if (warp < kGateWarp) keep_part_inputs(p, own, part, rows, tile, warp);
  if (own.logs()) {
    __syncthreads();
    log_part_rows(p, own, head, part, sequence, rows, tile, warp);
  }
  if (finishes) {
    sent.await();
    PerLane<float4> v = sent_row(p, tile.o[warp - kFinishWarp]);
    finish_delta_row(p, rows.first + finished, head, norm, gate, v);
  }
  if (sequence == 0 && part == 0) write_padding(p, head);
#endif
}

}  // namespace

bool can_part_delta(const DeltaNetStep& p, const Launch& how) {
  return how.clusters && p.n_rows <= kDeltaPartRows && p.n_taps <= kDeltaMostTaps;
}

void part_delta_net(const DeltaNetStep& p, const Launch& how) {
  CHECK(p.head_dim <= kDeltaDims && p.n_rows <= kDeltaPartRows && p.n_taps <= kDeltaMostTaps);
  const dim3 grid(static_cast<unsigned>(kDeltaParts * p.n_value_heads),
                  static_cast<unsigned>(p.n_sequences));
  launch(delta_part_kernel, grid, kDeltaPartWarps * kWarp, 0, how, p, kDeltaParts);
}

}  // namespace sluice::backend::cuda
