// Activations to int8 blocks of 32 (numeric contract, part A), and SwiGLU (part C).
//
// Layout   x: [n] f32; q: [n] int8; d, y: [n / 32] f32; gate, up, h: [n] f32.
// Mapping  one warp per block of 32, one lane per value: maximum and sum are warp reductions of
//          integers, so their order cannot matter.
// Limits   n % 32 == 0 for quantize_activation (the launcher checks).
// SPDX-License-Identifier: Apache-2.0
#include "backend/cuda/contract.h"
#include "backend/cuda/cuda_error.h"
#include "backend/cuda/quantize_activation.h"
#include "backend/cuda/warp.cuh"
#include "base/check.h"

namespace sluice::backend::cuda {
namespace {

constexpr int kThreads = 256;

__global__ void quantize_activation_kernel(const float* __restrict__ x, int64_t n,
                                           int8_t* __restrict__ q, float* __restrict__ d,
                                           float* __restrict__ y) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= n) return;  // whole warps: n is a multiple of 32
  const int64_t block = i / kWarp;
  quantize_block({x[i]}, q + kWarp * block, d + block, y + block);
}

__global__ void swiglu_kernel(const float* gate, const float* up, int64_t n, float* h) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i < n) h[i] = swiglu(gate[i], up[i]);
}

unsigned n_blocks(int64_t n) { return static_cast<unsigned>((n + kThreads - 1) / kThreads); }

}  // namespace

void quantize_activation(const float* x, int64_t n, int8_t* q, float* d, float* y,
                         cudaStream_t stream) {
  CHECK(n > 0 && n % kWarp == 0);
  quantize_activation_kernel<<<n_blocks(n), kThreads, 0, stream>>>(x, n, q, d, y);
  CHECK_CUDA(cudaGetLastError());
}

void swiglu(const float* gate, const float* up, int64_t n, float* h, cudaStream_t stream) {
  CHECK(n > 0);
  swiglu_kernel<<<n_blocks(n), kThreads, 0, stream>>>(gate, up, n, h);
  CHECK_CUDA(cudaGetLastError());
}

}  // namespace sluice::backend::cuda
