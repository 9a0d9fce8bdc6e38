// The gated delta rule over many rows (wide_delta_body.h).
//
// Layout   as in wide_delta.h; o stands in `out` before it is normalised there.
// Mapping  make: a warp has a head's q, k or v of 16 rows. Columns: a block has 32 columns of a
//          head's S, rows come in tiles of 16 while those before are computed. Finish: a warp has
//          a head of a row.
// Limits   those of delta_net(), and n_taps <= 4.
// Cost     columns: 96 multiply-adds or multiplications a lane and row, on a chain of three
//          exchanges; 128 blocks for a sequence of the 35B model, on 132 SMs of an H200.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/wide_delta.h"

#include "backend/cuda/async_copy.cuh"
#include "backend/cuda/launch.cuh"
#include "backend/cuda/warp.cuh"
#include "backend/cuda/wide_delta_body.h"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kRowWarps = 8;  // of make and finish

// Does not let the next kernel begin: that one's blocks shall find all SMs empty, one for each.
__global__ void __launch_bounds__(kRowWarps* kWarp)
    make_delta_kernel(const __grid_constant__ WideDelta w) {
  const DeltaNetStep& p = w.of;
  const int number = static_cast<int>(blockIdx.x) * kRowWarps + warp_index();
  const int first = static_cast<int>(blockIdx.y) * kMadeRows;
  const int n = min(kMadeRows, __ldcg(p.n_live) - first);
  wait_for_previous_kernel();
  if (n <= 0 || number >= 2 * p.n_key_heads + p.n_value_heads) return;
  make_delta_rows(w, number, first, n);
}

struct CopyAsync {
  __device__ __forceinline__ void operator()(float* to, const float* from) const {
    copy_16(reinterpret_cast<uint8_t*>(to), from);
  }
};

// Of the sequence's rows, while the next tile is under way.
template <bool logs>
__device__ __forceinline__ void take_rows(const WideDelta& w, const DeltaHead& own,
                                          const DeltaRows& rows, WideDeltaTile (&tiles)[2],
                                          WideDeltaColumns& columns) {
  const int head = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int warp = warp_index();
  const auto fetch = [&](int first, WideDeltaTile& tile) {
    const int n = min(kWideDeltaTile, rows.n - first);
    if (n > 0) fetch_delta_rows(w, head, part, rows.first + first, n, warp, tile, CopyAsync{});
    end_group();
  };
  fetch(0, tiles[0]);
#pragma unroll 1
  for (int first = 0, at = 0; first < rows.n; first += kWideDeltaTile, at = 1 - at) {
    await_groups<0>();
    __syncthreads();  // the tile is there, and nobody reads the other
    fetch(first + kWideDeltaTile, tiles[1 - at]);
    columns.take_rows<logs>(w.of, own, tiles[at], first, min(kWideDeltaTile, rows.n - first));
  }
}

__global__ void __launch_bounds__(kWideDeltaWarps* kWarp, 1)
    delta_columns_kernel(const __grid_constant__ WideDelta w) {
  __shared__ WideDeltaTile tiles[2];
  const DeltaNetStep& p = w.of;
  const int head = static_cast<int>(blockIdx.x), part = static_cast<int>(blockIdx.y);
  const int sequence = static_cast<int>(blockIdx.z), warp = warp_index();
  let_next_kernel_begin();
  const DeltaRows rows = find_rows<16>(p, __ldcg(p.n_live), sequence);
  if (rows.n == 0) {
    wait_for_previous_kernel();
    return;
  }
  const DeltaHead own(p, head, sequence, rows);
  WideDeltaColumns columns;
  columns.load(p, own.column_before(p, 0), part * kPartColumns + warp * kDeltaColumns);
  columns.open(p, rows.first, head);
  if (p.head_dim < kDeltaDims) {
    auto* const words = reinterpret_cast<float*>(tiles);
    for (int i = static_cast<int>(threadIdx.x); i < static_cast<int>(sizeof(tiles) / 4);
         i += kWideDeltaWarps * kWarp) {
      words[i] = 0.0f;
    }
    __syncthreads();
  }
  wait_for_previous_kernel();
  if (own.logs()) {
    take_rows<true>(w, own, rows, tiles, columns);
  } else {
    take_rows<false>(w, own, rows, tiles, columns);
  }
  columns.finish(p, rows.n);
  columns.store(p, own.column_after(p, 0));
  if (part != 0) return;
  if (warp < 3) own.keep_inputs(p, warp);
  if (own.logs()) log_delta_rows(w, own, head, rows, warp);
}

__global__ void __launch_bounds__(kRowWarps* kWarp)
    finish_delta_kernel(const __grid_constant__ DeltaNetStep p) {
  const int head = static_cast<int>(blockIdx.x) * kRowWarps + warp_index();
  const int row = static_cast<int>(blockIdx.y);
  let_next_kernel_begin();
  const bool is_live = row < __ldcg(p.n_live);
  wait_for_previous_kernel();
  if (head < p.n_value_heads) finish_wide_delta(p, row, head, is_live);
}

dim3 grid_of(int x, int y, int z = 1) {
  return dim3(static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z));
}
constexpr int n_parts(int n, int of) { return (n + of - 1) / of; }

}  // namespace

void wide_delta_net(const WideDelta& w, const Launch& how) {
  const DeltaNetStep& p = w.of;
  CHECK(p.head_dim > 0 && p.head_dim % 8 == 0 && p.head_dim <= kDeltaDims);
  CHECK(p.n_taps > 0 && p.n_taps <= kDeltaMostTaps);
  CHECK(p.n_key_heads > 0 && p.n_value_heads % p.n_key_heads == 0 && p.n_sequences > 0);
  CHECK(w.made && (!p.out_int8 || p.head_dim % 32 == 0));
  const int n_made = 2 * p.n_key_heads + p.n_value_heads;
  launch(make_delta_kernel, grid_of(n_parts(n_made, kRowWarps), n_parts(p.n_rows, kMadeRows)),
         kRowWarps * kWarp, 0, how, w);
  launch(delta_columns_kernel,
         grid_of(p.n_value_heads, n_parts(p.head_dim, kPartColumns), p.n_sequences),
         kWideDeltaWarps * kWarp, 0, how, w);
  launch(finish_delta_kernel, grid_of(n_parts(p.n_value_heads, kRowWarps), p.n_rows),
         kRowWarps * kWarp, 0, how, p);
}

}  // namespace sluice::backend::cuda
