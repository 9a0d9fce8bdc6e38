// Weights of float types with float inputs, in the order of the numeric contract: eight chains of
// fma for a pair of rows. Simple and not fast: models whose weights are worth a GPU are quantised.
// Pointers are device memory; nothing here synchronises or allocates.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "backend/cuda/launch.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

// out[r] = norm(x[index[r]]), to the bit as the CPU has it. index null: r.
struct NormRows {
  const float* x = nullptr;        // [.., n_cols]
  const int32_t* index = nullptr;  // [n_rows]
  const float* norm = nullptr;     // [n_cols]
  float eps = 0.0f;
  int n_rows = 0;
  int n_cols = 0;
  float* out = nullptr;  // [n_rows, n_cols]
};
void norm_rows(const NormRows& p, const Launch& how);

// out[r] = W x[r] + bias, or out[r] += that.
struct FloatProject {
  quant::Type type = quant::Type::f32;  // f32, f16 or bf16
  const void* weight = nullptr;         // [n_out, n_cols], rows
  const float* bias = nullptr;          // [n_out] or null
  int n_out = 0;
  int n_cols = 0;
  const float* x = nullptr;  // [n_rows, n_cols]
  int n_rows = 0;
  float* out = nullptr;  // rows out_stride apart
  int64_t out_stride = 0;
  bool adds = false;
};
void float_project(const FloatProject& p, const Launch& how);

}  // namespace sluice::backend::cuda
