// Projections of norm(x) with float weights, in narrow steps, as part of a layer that is otherwise
// quantised: some hybrids' files have the two gates of their recurrent layers in F32. All weights
// of a type are one launch, which makes norm(x) for itself; results are float_rows.h's to the bit.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "backend/cuda/launch.h"
#include "backend/cuda/project.h"
#include "quant/type.h"

namespace sluice::backend::cuda {

// [n_rows, n_cols], rows as in a file; bias [n_rows] or null.
struct FloatWeight {
  quant::Type type = quant::Type::f32;  // f32, f16 or bf16
  const void* data = nullptr;
  int n_rows = 0;
  const float* bias = nullptr;
  int out_column = 0;  // where its rows' results begin among a row's
};

// x: [n_rows, n_cols] f32; norm: [n_cols]; out: [n_rows, out_stride].
struct FloatIn {
  const float* x = nullptr;
  const float* norm = nullptr;
  float eps = 0.0f;
  int n_rows = 0;
  int n_cols = 0;
  FloatWeight weights[kMaxProjections];
  int n_weights = 0;
  float* out = nullptr;
  int64_t out_stride = 0;
};
void float_in(const FloatIn& p, const Launch& how);

// For weights of few rows, which fit into a block's memory; others are float_rows.h's.
bool float_in_fits(int64_t n_out, int64_t n_cols, const Launch& how);

}  // namespace sluice::backend::cuda
