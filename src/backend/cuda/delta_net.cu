// The gated delta rule, row by row (delta_net_body.h), for steps of any width.
//
// Layout   as in delta_net.h.
// Mapping  a block is a value head of a sequence; it reads and writes each number of S once, and
//          those of before the step are asked for before the wait for the kernel before.
// Limits   head_dim % 8 == 0, <= 128; a sequence's rows stand side by side.
// Cost     bounds, and what the chunked form should bring: docs/decisions/0022.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/delta_net.h"

#include "backend/cuda/delta_net_body.h"
#include "backend/cuda/delta_part.h"
#include "backend/cuda/delta_row.h"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

// Rows from n_live on: zeros. By the blocks of the first sequence.
__device__ __forceinline__ void write_padding(const DeltaNetStep& p, int head, int n_live) {
#pragma unroll 1
  for (int row = n_live + warp_index(); row < p.n_rows; row += kDeltaWarps) {
    write_delta_row(p, row, head, {float4{0, 0, 0, 0}});
  }
}

__global__ void __launch_bounds__(kDeltaWarps* kWarp, 1)
    delta_net_kernel(const __grid_constant__ DeltaNetStep p) {
  __shared__ DeltaTile tile;
  const int head = static_cast<int>(blockIdx.x), sequence = static_cast<int>(blockIdx.y);
  const int warp = warp_index();
  let_next_kernel_begin();
  const int n_live = __ldcg(p.n_live);
  const DeltaRows rows = find_rows(p, n_live, sequence);
  if (rows.n == 0) {
    wait_for_previous_kernel();
    if (sequence == 0) write_padding(p, head, n_live);
    return;
  }
  const DeltaHead own(p, head, sequence, rows);
  DeltaColumns columns;
  columns.load(p, own, warp * kDeltaColumns);
  wait_for_previous_kernel();
#pragma unroll 1
  for (int first = 0; first < rows.n; first += kDeltaTile) {
    const int n = min(kDeltaTile, rows.n - first);
#pragma unroll 1
    for (int i = warp; i < 3 * n; i += kDeltaWarps) own.make(p, i % 3, first + i / 3, i / 3, tile);
    __syncthreads();
#pragma unroll 1
    for (int at = 0; at < n; ++at) columns.step(tile, at);
    __syncthreads();
#pragma unroll 1
    for (int at = warp; at < n; at += kDeltaWarps) own.finish(p, first + at, at, tile);
  }
  columns.store(p, own);
  if (warp < 3) own.keep_inputs(p, warp);
  if (sequence == 0) write_padding(p, head, n_live);
}

// A block is a value head.
__global__ void __launch_bounds__(kDeltaWarps* kWarp, 1)
    delta_replay_kernel(const __grid_constant__ DeltaReplay way) {
  const int head = static_cast<int>(blockIdx.x), warp = warp_index();
  let_next_kernel_begin();
  wait_for_previous_kernel();
  replay_columns(way, head, warp);
  if (warp < 3) replay_inputs(way, head, warp);
}

void require_shape(const DeltaNetStep& p) {
  CHECK(p.head_dim > 0 && p.head_dim % 8 == 0 && p.head_dim <= kDeltaDims && p.n_taps > 0);
  CHECK(p.n_key_heads > 0 && p.n_value_heads % p.n_key_heads == 0);
}

}  // namespace

void delta_net(const DeltaNetStep& p, const Launch& how) {
  require_shape(p);
  CHECK(p.n_sequences > 0 && (!p.out_int8 || p.head_dim % 32 == 0));
  if (can_row_delta(p, how)) return row_delta_net(p, how);
  if (can_part_delta(p, how)) return part_delta_net(p, how);
  const dim3 grid(static_cast<unsigned>(p.n_value_heads), static_cast<unsigned>(p.n_sequences));
  launch(delta_net_kernel, grid, kDeltaWarps * kWarp, 0, how, p);
}

void delta_replay(const DeltaReplay& p, const Launch& how) {
  require_shape(p.of);
  CHECK(p.begin < p.end && p.end - p.begin <= p.of.n_places && p.from != p.to);
  launch(delta_replay_kernel, dim3(static_cast<unsigned>(p.of.n_value_heads)), kDeltaWarps * kWarp,
         0, how, p);
}

}  // namespace sluice::backend::cuda
