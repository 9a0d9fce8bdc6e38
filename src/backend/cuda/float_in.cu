// Float projections of norm(x) in narrow steps (float_in.h).
//
// Layout   weights: rows as in a file; x, out: f32 rows.
// Mapping  a block has four rows of weights and a row of x. It brings its weights to shared memory
//          before the wait for the kernel before. Eight lanes have the contract's eight chains, of
//          the sum of squares and then of each of the four products.
// Limits   float_in_fits().
// Cost     two chains of n_cols / 8 multiply-adds, with a barrier or two between.
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/float_in.h"

#include "backend/cuda/float_dot.cuh"
#include "backend/cuda/launch.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

using quant::Type;

constexpr int kThreads = 128;
constexpr int kRowsPerBlock = kWarp / kChains;
constexpr int kMostOut = 256;  // rows of a weight: each row of x is normalised for every four anew
constexpr int kMostCols = 1 << 14;
constexpr int kPad = 8;  // so that the rows' chains have banks of their own

struct FloatParts {
  FloatIn of;   // without weights of other types
  int n_whole;  // rows of them all

  // Row i of all.
  struct Row {
    const void* data;
    const float* bias;
    int column;
  };
  template <Type type>
  __device__ __forceinline__ Row row(int i) const {
    int part = 0;
#pragma unroll 1
    while (part + 1 < of.n_weights && i >= of.weights[part].n_rows) i -= of.weights[part++].n_rows;
    const FloatWeight& w = of.weights[part];
    const int64_t at = static_cast<int64_t>(i) * of.n_cols * (type == Type::f32 ? 4 : 2);
    return {static_cast<const uint8_t*>(w.data) + at, w.bias ? w.bias + i : nullptr,
            w.out_column + i};
  }
};

// Eight weights, as f32.
template <Type type>
__device__ __forceinline__ void stage_eight(const void* row, int c, float* to) {
  if constexpr (type == Type::f32) {
    const float4* const from = reinterpret_cast<const float4*>(static_cast<const float*>(row) + c);
    const float4 a = __ldg(from), b = __ldg(from + 1);
    reinterpret_cast<float4*>(to)[0] = a;
    reinterpret_cast<float4*>(to)[1] = b;
  } else {
    const uint4 eight =
        __ldg(reinterpret_cast<const uint4*>(static_cast<const uint16_t*>(row) + c));
    const uint32_t pairs[4] = {eight.x, eight.y, eight.z, eight.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
      const uint32_t bits = pairs[i / 2] >> 16 * (i % 2) & 0xffffu;
      to[i] = type == Type::f16 ? half_bits(bits) : __uint_as_float(bits << 16);
    }
  }
}

// a . b by the eight chains; in all lanes of the eight.
__device__ __forceinline__ float chains_dot(const float* a, const float* b, int n, int chain) {
  float dot = 0.0f;
#pragma unroll 16
  for (int c = chain; c < n; c += kChains) dot = __fmaf_rn(a[c], b[c], dot);
#pragma unroll
  for (int mask = kChains / 2; mask > 0; mask /= 2) {
    dot = __fadd_rn(dot, __shfl_xor_sync(kAllLanes, dot, mask));
  }
  return dot;
}

template <Type type>
__global__ void __launch_bounds__(kThreads) float_in_kernel(const __grid_constant__ FloatParts p) {
  extern __shared__ __align__(16) float shared[];
  __shared__ float scale;
  const int n = p.of.n_cols, stride = n + kPad, thread = static_cast<int>(threadIdx.x);
  float* const weights = shared;
  float* const norm = weights + kRowsPerBlock * stride;
  float* const x = norm + n;
  const int first = static_cast<int>(blockIdx.x) * kRowsPerBlock, r = static_cast<int>(blockIdx.y);
  let_next_kernel_begin();
#pragma unroll 1
  for (int i = 0; i < kRowsPerBlock; ++i) {
    const void* const row = p.row<type>(min(first + i, p.n_whole - 1)).data;
#pragma unroll 2
    for (int c = 8 * thread; c < n; c += 8 * kThreads) {
      stage_eight<type>(row, c, weights + i * stride + c);
    }
  }
  for (int c = 4 * thread; c < n; c += 4 * kThreads) {
    *reinterpret_cast<float4*>(norm + c) = load_constant(p.of.norm + c);
  }
  wait_for_previous_kernel();
  for (int c = 4 * thread; c < n; c += 4 * kThreads) {
    *reinterpret_cast<float4*>(x + c) = load_past_l1(p.of.x + static_cast<int64_t>(r) * n + c);
  }
  __syncthreads();
  const int lane = thread % kWarp, chain = lane % kChains;
  if (thread < kWarp) {
    const float mean = __fdiv_rn(chains_dot(x, x, n, chain), static_cast<float>(n));
    if (lane == 0) scale = __fdiv_rn(1.0f, __fsqrt_rn(__fadd_rn(mean, p.of.eps)));
  }
  __syncthreads();
  for (int c = thread; c < n; c += kThreads) x[c] = __fmul_rn(__fmul_rn(x[c], scale), norm[c]);
  __syncthreads();
  if (thread >= kWarp) return;
  const int own = lane / kChains;
  const float dot = chains_dot(weights + own * stride, x, n, chain);
  if (chain != 0 || first + own >= p.n_whole) return;
  const FloatParts::Row row = p.row<type>(first + own);
  p.of.out[r * p.of.out_stride + row.column] = row.bias ? __fadd_rn(dot, __ldg(row.bias)) : dot;
}

constexpr int shared_bytes(int n_cols) {
  return static_cast<int>(sizeof(float)) * (kRowsPerBlock * (n_cols + kPad) + 2 * n_cols);
}

// Of one type.
void run_parts(const FloatParts& parts, Type type, const Launch& how) {
  const dim3 grid(static_cast<unsigned>((parts.n_whole + kRowsPerBlock - 1) / kRowsPerBlock),
                  static_cast<unsigned>(parts.of.n_rows));
  with_float_type(type, [&]<Type t>() {
    launch(float_in_kernel<t>, grid, kThreads, static_cast<size_t>(shared_bytes(parts.of.n_cols)),
           how, parts);
  });
}

}  // namespace

bool float_in_fits(int64_t n_out, int64_t n_cols, const Launch& how) {
  return n_out <= kMostOut && n_cols % 8 == 0 && n_cols <= kMostCols &&
         shared_bytes(static_cast<int>(n_cols)) + 1024 <= how.shared_bytes;
}

void float_in(const FloatIn& p, const Launch& how) {
  CHECK(p.n_rows >= 1);
  for (const Type type : {Type::f32, Type::f16, Type::bf16}) {
    FloatParts parts{p, 0};
    parts.of.n_weights = 0;
    for (int i = 0; i < p.n_weights; ++i) {
      CHECK(float_in_fits(p.weights[i].n_rows, p.n_cols, how));
      if (p.weights[i].type != type) continue;
      parts.of.weights[parts.of.n_weights++] = p.weights[i];
      parts.n_whole += p.weights[i].n_rows;
    }
    if (parts.n_whole > 0) run_parts(parts, type, how);
  }
}

}  // namespace sluice::backend::cuda
