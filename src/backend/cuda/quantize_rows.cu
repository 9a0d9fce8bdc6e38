// int8(norm(x)) of several rows. Every block of a projection did this for itself before; without
// it, and with two blocks an SM, project_in of eight rows went from 24.1 to 8.9 us
// (docs/decisions/0015).
//
// Layout   x: f32 rows; out: int8 rows (int8_rows.h).
// Mapping  a block has a row, a warp every eighth segment of 128 columns (stage_row.h).
// Limits   n_cols % 32 == 0 (the launcher checks).
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/quantize_rows.h"

#include "backend/cuda/launch.cuh"
#include "backend/cuda/stage_row.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = NormedRow::kWarps * kWarp;

__global__ void __launch_bounds__(kThreads)
    quantize_rows_kernel(const __grid_constant__ QuantizeRows p) {
  extern __shared__ float squares[];  // [segments]
  let_next_kernel_begin();
  const int r = static_cast<int>(blockIdx.x);
  NormedRow row(p.x, {p.norm, p.eps}, p.n_cols, warp_index());
  wait_for_previous_kernel();
  row.choose(p.index ? __ldcg(p.index + r) : r);
  row.add_squares(squares);
  __syncthreads();
  const int64_t first = static_cast<int64_t>(r) * p.out.n_chunks * 8;
  row.write(squares, [&](int segment, int lane) {
    const int64_t block = first + 4 * segment + lane / 8;
    return Int8Place{p.out.q + 32 * block + 4 * (lane % 8), p.out.d + block, p.out.y + block,
                     kSegment * segment + 4 * lane < p.n_cols};
  });
}

}  // namespace

void quantize_rows(const QuantizeRows& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_cols > 0 && p.n_cols % 32 == 0);
  CHECK(p.out.n_chunks == row_shape(p.n_cols).n_chunks);
  const auto n_segments = static_cast<size_t>((p.n_cols + kSegment - 1) / kSegment);
  launch(quantize_rows_kernel, dim3(static_cast<unsigned>(p.n_rows)), kThreads, 4 * n_segments, how,
         p);
}

}  // namespace sluice::backend::cuda
