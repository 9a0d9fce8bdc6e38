// Part B of the numeric contract (docs/decisions/0002): the dot product of a stored weight row
// with an activation row. This is the scalar reference; CPU and CUDA kernels must equal it bit for
// bit. It is fast enough to run a model with, but its purpose is to be read.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "quant/activation.h"
#include "quant/type.h"

namespace sluice::quant {

// Quantised types. row: n weights, any alignment; n a multiple of the type's block.
float dot(Type type, const std::byte* row, int64_t n, const ActivationView& a);

// out[r] = dot(type, row, n, a[r]), bit for bit, reading and unpacking the row once.
void dot_rows(Type type, const std::byte* row, int64_t n, const ActivationView* a, int n_rows,
              float* out);

// F32, F16, BF16. x: [n] f32, n >= 0. Eight chains of fma, element i in chain i mod 8; the chains
// are added pairwise: 0+4, 1+5, 2+6, 3+7; then 0+2, 1+3; then 0+1.
float dot_float(Type type, const std::byte* row, const float* x, int64_t n);

// The same for two rows of f32.
float dot_f32(const float* a, const float* b, int64_t n);

}  // namespace sluice::quant
