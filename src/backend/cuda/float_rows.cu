// Norms and projections of float weights (float_rows.h).
//
// Layout   weights: rows as in a file; x, out: f32 rows.
// Mapping  norm: a block has a row, and eight of its threads the contract's eight chains of the sum
//          of squares. Projection: eight lanes have a weight row and up to four inputs.
// Limits   none; launched without overlap, so that all reads see the kernel before.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/float_rows.h"

#include "backend/cuda/float_dot.cuh"
#include "backend/cuda/launch.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int kRowsPerBlock = kThreads / kChains;
constexpr int kInputs = 4;

Launch alone(Launch how) {
  how.overlaps = false;
  return how;
}

__global__ void __launch_bounds__(kThreads) norm_rows_kernel(const __grid_constant__ NormRows p) {
  __shared__ float scale;
  const int own = static_cast<int>(threadIdx.x), r = static_cast<int>(blockIdx.x);
  const int64_t from = p.index ? p.index[r] : r;
  const float* const x = p.x + from * p.n_cols;
  if (own < kWarp) {
    float squares = 0.0f;
    for (int c = own; own < kChains && c < p.n_cols; c += kChains) {
      squares = __fmaf_rn(x[c], x[c], squares);
    }
#pragma unroll
    for (int mask = kChains / 2; mask > 0; mask /= 2) {
      squares = __fadd_rn(squares, __shfl_xor_sync(kAllLanes, squares, mask));
    }
    const float mean = __fdiv_rn(squares, static_cast<float>(p.n_cols));
    if (own == 0) scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, p.eps)));
  }
  __syncthreads();
  for (int c = own; c < p.n_cols; c += kThreads) {
    p.out[static_cast<int64_t>(r) * p.n_cols + c] = __fmul_rn(__fmul_rn(x[c], scale), p.norm[c]);
  }
}

template <quant::Type type>
__global__ void __launch_bounds__(kThreads)
    float_project_kernel(const __grid_constant__ FloatProject p) {
  const int chain = static_cast<int>(threadIdx.x) % kChains;
  const int row = static_cast<int>(blockIdx.x) * kRowsPerBlock + static_cast<int>(threadIdx.x) / 8;
  const int first = static_cast<int>(blockIdx.y) * kInputs;
  const int64_t at = min(row, p.n_out - 1);  // all lanes take part in the sums
  const auto* const weight =
      static_cast<const uint8_t*>(p.weight) + at * p.n_cols * (type == quant::Type::f32 ? 4 : 2);
  for (int k = 0; k < kInputs && first + k < p.n_rows; ++k) {
    float dot[1];
    const int r = first + k;
    float_dots<type>(weight, p.x + static_cast<int64_t>(r) * p.n_cols, p.n_cols, chain, dot);
    if (chain != 0 || row >= p.n_out) continue;
    float* const out = p.out + r * p.out_stride + row;
    const float value = p.bias ? __fadd_rn(dot[0], p.bias[row]) : dot[0];
    *out = p.adds ? __fadd_rn(*out, value) : value;
  }
}

}  // namespace

void norm_rows(const NormRows& p, const Launch& how) {
  CHECK(p.n_rows >= 1 && p.n_cols >= 1);
  launch(norm_rows_kernel, dim3(static_cast<unsigned>(p.n_rows)), kThreads, 0, alone(how), p);
}

void float_project(const FloatProject& p, const Launch& how) {
  CHECK(quant::is_float(p.type) && p.n_rows >= 1 && p.n_out >= 1);
  const dim3 grid(static_cast<unsigned>((p.n_out + kRowsPerBlock - 1) / kRowsPerBlock),
                  static_cast<unsigned>((p.n_rows + kInputs - 1) / kInputs));
  with_float_type(p.type, [&]<quant::Type type>() {
    launch(float_project_kernel<type>, grid, kThreads, 0, alone(how), p);
  });
}

}  // namespace sluice::backend::cuda
